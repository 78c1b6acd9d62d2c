"""The examples in the reference of manifests.

`tests/docs/test_manifest_examples.py` validates all of them with the models, and fails for a field
that has no example and is not listed there as obvious.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# One manifest for each kind, and for each record whose use its description does not show.
EXAMPLES: Final[Mapping[str, str]] = {
    "Job": """\
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: report}
spec:
  command: python3 /app/report.py
  env: [{name: FORMAT, value: pdf}]
  maxAttempts: 5
  timeout: 10m
""",
    "Workflow": """\
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: etl}
spec:
  tasks:
    - name: extract
      items: [north, south]
      command: /app/extract "$WORKRON_ITEM"
    - name: load
      dependsOn: [{name: extract}]
      command: /app/load
""",
    "WorkerPool": """\
apiVersion: workron.dev/v1alpha1
kind: WorkerPool
metadata: {name: default}
spec:
  image: registry.example.com/reports:1.4
  slots: 2
  maxReplicas: 20
  resources: {requests: {cpu: "1", memory: 1Gi}}
  env:
    - name: API_KEY
      valueFrom: {secretKeyRef: {name: reports, key: api-key}}
""",
    "Backoff": """\
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: upload}
spec:
  argv: [/app/upload, --all]
  retryOn: [75]
  backoff: {initial: 5s, max: 10m, factor: 3}
""",
    "Dependency": """\
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: alarm}
spec:
  dependsOn: [{kind: Workflow, name: etl, when: Failed}]
  command: /app/alarm
""",
    "TaskDependency": """\
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: thumbnails}
spec:
  tasks:
    - {name: fetch, count: 3, command: /app/fetch}
    - {name: resize, count: 3, dependsOn: [{name: fetch, each: true}], command: /app/resize}
    - {name: cleanup, dependsOn: [{name: resize, when: Finished}], command: /app/cleanup}
""",
}

# For each record, sentences that name fields, and below them the part of a manifest that uses
# those: a `spec`, or for Task one entry of `tasks`.
FIELD_EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "JobSpec": (
        """\
`argv` runs a program without a shell: each entry is one argument, with its spaces.

argv: [/app/report, --title, "Sales in May"]
""",
        """\
`shell` is the program that runs `command`. A name is called with `-c`; a list is used as written,
with the command added.

shell: [bash, -euo, pipefail, -c]
command: |
  cat /data/*.csv | sort -u > /data/all.csv
  wc -l /data/all.csv
""",
        """\
`workdir` is a directory that the image has. It is not removed after the attempt.

command: make all
workdir: /srv/site
""",
        """\
`pool` names the WorkerPool whose workers run the command.

command: /app/train
pool: gpu
""",
        """\
With `retryOn`, only these exit codes are retried, here 75, until `maxAttempts` attempts have
failed.

command: /app/import
maxAttempts: 5
retryOn: [75]
""",
        """\
With `failOn`, these exit codes fail the job at once. Every other failure is retried.

command: /app/import
failOn: [64, 65]
""",
        """\
`backoff` delays retries: up to 5 seconds before the first, then up to 15, and at most 10 minutes.

command: /app/import
backoff: {initial: 5s, factor: 3, max: 10m}
""",
        """\
`timeout` bounds one attempt. `deadline` bounds the job from its submission to its end, with all
attempts and all waiting.

command: /app/import
timeout: 10m
deadline: 2h
""",
        """\
`maxWorkerLosses` bounds how often the job starts again because its worker was lost. Here the
second loss fails the job.

command: /app/import
maxWorkerLosses: 1
""",
        """\
With `overlap: Forbid`, a job whose worker was lost waits for proof that the attempt is dead
before it starts again.

command: /app/migrate-schema
overlap: Forbid
""",
        """\
With `onLeaseLost: continue`, a worker that cannot reach the store does not kill the command.
Meanwhile another worker may start it again, so the command must allow that.

command: /app/long-simulation
onLeaseLost: continue
""",
        """\
`outputStreamBytes` stores the first 10 MB of the output while the command runs.
`outputLimitBytes` keeps 256 KiB of what follows.

command: /app/import --verbose
outputStreamBytes: 10000000
outputLimitBytes: 262144
""",
        """\
`dependsOn` waits for other Jobs and Workflows of the namespace, here for the success of one and
for any end of the other.

command: /app/report
dependsOn:
  - {kind: Workflow, name: etl}
  - {name: cleanup, when: Finished}
""",
        """\
`priority` lets the job start before the waiting jobs of lower priority in its pool. Running jobs
are not interrupted.

command: /app/report --urgent
priority: 100
""",
        """\
`startAfter` keeps the job waiting until a time.

command: /app/report
startAfter: 2026-01-31T02:00:00Z
""",
        """\
`suspend` keeps the job waiting until the manifest is applied again with `false`.

command: /app/report
suspend: true
""",
        """\
`cancel` cancels the job that was applied before with the same name.

command: /app/report
cancel: true
""",
        """\
`ttlSecondsAfterFinished` deletes the object from the cluster, here one day after its end.

command: /app/report
ttlSecondsAfterFinished: 86400
""",
    ),
    "WorkflowSpec": (
        """\
`priority`, `suspend`, `cancel` and `ttlSecondsAfterFinished` apply to all tasks. `forceCancel`
also cancels those of the field finally.

tasks:
  - {name: extract, command: /app/extract}
  - {name: load, command: /app/load, dependsOn: [{name: extract}]}
priority: -10
suspend: true
cancel: false
forceCancel: false
ttlSecondsAfterFinished: 3600
""",
        """\
Tasks of `finally` run when all other tasks have ended, however they ended. They find the state of
the tasks in the variable `$WORKRON_RUN_STATE`.

tasks:
  - {name: load, command: /app/load}
finally:
  - {name: notify, command: 'notify "$WORKRON_RUN" "$WORKRON_RUN_STATE"'}
""",
        """\
`env` and `defaults` apply to all tasks, and a task can override them. After the `deadline`, or with
`failFast` after the first failure, the tasks that have not ended are cancelled.

env: [{name: REGION, value: eu}]
defaults: {pool: large, maxAttempts: 5, timeout: 10m, backoff: {initial: 30s}}
deadline: 2h
failFast: true
tasks:
  - {name: load, command: /app/load}
""",
    ),
    "Task": (
        """\
`count` makes an array. Its elements find their index, here 0 to 9, in `$WORKRON_INDEX`.

name: simulate
count: 10
command: /app/simulate --seed "$WORKRON_INDEX"
""",
        """\
`items` makes an array with one element for each item, which is in `$WORKRON_ITEM`.

name: extract
items: [north, south, 7]
command: /app/extract "$WORKRON_ITEM"
""",
        """\
`dependsOn` also passes results: the upstream `count-rows` writes one to `$WORKRON_RESULT`, and
this task finds it in the file `$WORKRON_INPUTS`.

name: report
dependsOn: [{name: count-rows}]
command: jq '."count-rows"' "$WORKRON_INPUTS"
""",
        """\
With a `kind`, `dependsOn` names a Job or Workflow outside of this workflow. It need not exist yet.

name: report
dependsOn: [{name: nightly-import, kind: Workflow}]
command: /app/report
""",
        """\
With `allowFailure`, the workflow can succeed although this task fails.

name: lint
command: ruff check
allowFailure: true
""",
        """\
With `maxFailures`, the array succeeds although some of its jobs fail: here up to 5 of 100.

name: fetch
count: 100
command: /app/fetch "$WORKRON_INDEX"
maxFailures: 5%
""",
    ),
    "WorkerPoolSpec": (
        """\
Between `minReplicas` and `maxReplicas`, the pool follows its queue. Each worker runs `slots` jobs
at a time, so this pool runs up to 80 jobs.

slots: 4
minReplicas: 0
maxReplicas: 20
""",
        """\
`replicas` fixes the number of workers. Then the pool does not scale with its queue.

replicas: 3
""",
        """\
`lease` is how long a lost worker keeps its claims, and `heartbeat` how often it proves that it
lives. A shorter lease finds a lost worker earlier and tolerates shorter failures of the database.

lease: 30s
heartbeat: 1s
""",
        """\
`drainTimeout` lets running jobs finish on a worker that is removed, here for an hour.

drainTimeout: 1h
""",
        """\
`resources` are those of the container in which commands run.

resources:
  requests: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}
  limits: {memory: 8Gi}
""",
        """\
`env` and `envFrom` set variables of all commands of the pool from values, Secrets and ConfigMaps.

env:
  - {name: LOG_LEVEL, value: debug}
  - name: API_KEY
    valueFrom: {secretKeyRef: {name: reports, key: api-key}}
envFrom:
  - {prefix: DB_, secretRef: {name: database}}
""",
        """\
`imagePullSecrets` name the Secrets with which `image` is pulled.

image: registry.example.com/reports:1.4
imagePullSecrets: [{name: registry}]
""",
        """\
`serviceAccountName` selects the ServiceAccount of the pods. Commands can read its token only with
`automountServiceAccountToken`.

serviceAccountName: reports
automountServiceAccountToken: true
""",
        """\
`volumes` are volumes of the pods, and `volumeMounts` say where commands find them.

volumes:
  - {name: data, persistentVolumeClaim: {claimName: warehouse}}
  - name: keys
    secret: {secretName: ssh, defaultMode: 256, items: [{key: id, path: id_ed25519}]}
  - {name: scratch, emptyDir: {sizeLimit: 10Gi}}
volumeMounts:
  - {name: data, mountPath: /data, subPath: reports, readOnly: true}
  - {name: keys, mountPath: /etc/keys}
  - {name: scratch, mountPath: /scratch}
""",
        """\
`nodeSelector` and `tolerations` bring the workers to nodes that have a taint.

nodeSelector: {accelerator: a100}
tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
""",
        """\
`affinity` spreads the workers over zones, if possible.

affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector: {matchLabels: {team: data}}
labels: {team: data}
""",
        """\
`priorityClassName` and `labels` are those of the pods.

priorityClassName: batch
labels: {team: data, cost-center: "4711"}
""",
    ),
}
