{{/* Object names are fixed: a namespace has at most one release, and the commands in the docs work. */}}

{{- define "workron.labels" -}}
{{ include "workron.selector" . }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/part-of: workron
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "workron.selector" -}}
app.kubernetes.io/name: workron-{{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "workron.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The namespaces in which the controller may create workers, as a JSON list. */}}
{{- define "workron.workerNamespaces" -}}
{{- $own := list .Release.Namespace "default" -}}
{{- .Values.workerNamespaces | default .Values.watchNamespaces | default $own | uniq | toJson -}}
{{- end }}

{{/* The namespace in which `helm test` runs its Job: one that may have workers. */}}
{{- define "workron.testNamespace" -}}
{{- if .Values.allNamespaces -}}
{{ .Release.Namespace }}
{{- else -}}
{{ include "workron.workerNamespaces" . | fromJsonArray | first }}
{{- end -}}
{{- end }}

{{- define "workron.storeVariable" -}}
- name: WORKRON_STORE
  valueFrom:
    secretKeyRef:
      {{- with .Values.database }}
      name: {{ .existingSecret | default "workron-database" }}
      key: {{ .existingSecret | empty | ternary "url" .existingSecretKey }}
      {{- end }}
{{- end }}

{{/* What the Pod Security Standard `restricted` asks of a container, and a read-only file system. */}}
{{- define "workron.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "workron.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "workron.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* DNS, and the API server, whose address no selector can name. */}}
{{- define "workron.egressToCluster" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    - {port: 443}
    - {port: 6443}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Rejects values that contradict each other. */}}
{{- define "workron.check" -}}
{{- $pools := include "workron.workerNamespaces" . | fromJsonArray -}}
{{- if and .Values.allNamespaces (or .Values.watchNamespaces .Values.workerNamespaces) -}}
{{- fail "allNamespaces is true, but watchNamespaces or workerNamespaces lists namespaces: set only one of them" -}}
{{- end -}}
{{- if .Values.watchNamespaces -}}
{{- range $pools -}}
{{- if not (has . $.Values.watchNamespaces) -}}
{{- fail (printf "workerNamespaces has %q, but watchNamespaces does not, so its Jobs would not run: add it to watchNamespaces" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .Values.allNamespaces -}}
{{- range .Values.workerPools -}}
{{- if not (has .namespace $pools) -}}
{{- fail (printf "workerPools has %s/%s, but namespace %q may not have workers: add it to workerNamespaces" .namespace .name .namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.database.sharedRole (or .Values.allNamespaces (ne (len $pools) 1)) -}}
{{- fail "database.sharedRole allows only one namespace: set workerNamespaces to a list of that one" -}}
{{- end -}}
{{- end }}
