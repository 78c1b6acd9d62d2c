{{/* Names are fixed: there is one release in a namespace, and what the docs say to type is right. */}}

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

{{/* Where workers may be made, as a list in JSON. */}}
{{- define "workron.poolNamespaces" -}}
{{- $own := list .Release.Namespace "default" -}}
{{- .Values.poolNamespaces | default .Values.watchNamespaces | default $own | uniq | toJson -}}
{{- end }}

{{/* Where `helm test` runs its Job: a namespace in which it finds workers. */}}
{{- define "workron.testNamespace" -}}
{{- if .Values.allNamespaces -}}
{{ .Release.Namespace }}
{{- else -}}
{{ include "workron.poolNamespaces" . | fromJsonArray | first }}
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

{{/* All that Pod Security `restricted` asks of a container, and a file system that is only read. */}}
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

{{/* Names, and the API server, whose address no selector can name. */}}
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

{{/* Values that contradict each other are refused, each in one sentence. */}}
{{- define "workron.check" -}}
{{- $pools := include "workron.poolNamespaces" . | fromJsonArray -}}
{{- if and .Values.allNamespaces (or .Values.watchNamespaces .Values.poolNamespaces) -}}
{{- fail "allNamespaces is true, but watchNamespaces or poolNamespaces names some: keep one of the two" -}}
{{- end -}}
{{- if .Values.watchNamespaces -}}
{{- range $pools -}}
{{- if not (has . $.Values.watchNamespaces) -}}
{{- fail (printf "poolNamespaces has %q, which watchNamespaces has not: Jobs there are not looked at; add it to watchNamespaces" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .Values.allNamespaces -}}
{{- range .Values.pools -}}
{{- if not (has .namespace $pools) -}}
{{- fail (printf "pools has %s/%s, but no workers may be made in %q: add it to poolNamespaces" .namespace .name .namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.database.sharedRole (or .Values.allNamespaces (ne (len $pools) 1)) -}}
{{- fail "database.sharedRole is for a single namespace: name that one in poolNamespaces, and no other" -}}
{{- end -}}
{{- end }}
