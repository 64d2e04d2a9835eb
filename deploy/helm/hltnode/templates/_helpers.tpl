{{- define "hltnode.selector" -}}
app.kubernetes.io/name: hltnode
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hltnode.labels" -}}
{{ include "hltnode.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "hltnode.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (ternary "cuda" "cpu" .Values.gpu.enabled) }}
{{- end -}}
{{- end }}

{{- /* Not empty if the nodes have a farm page, from the value farmPage, the environment or the configuration. */}}
{{- define "hltnode.readsFarm" -}}
{{- $configured := regexMatch `(?m)^\s*(http\.)?farm_nodes\s*=` (include "hltnode.config" .) -}}
{{- if or .Values.farmPage.enabled (hasKey .Values.environment "HLTNODE_HTTP__FARM_NODES") $configured }}yes{{ end -}}
{{- end }}

{{- define "hltnode.config" -}}
{{- .Values.config | default (.Files.Get "files/node.toml") -}}
{{- end }}

{{/* Largest number of nodes: those that have a name. */}}
{{- define "hltnode.nodes" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled -}}
{{- end }}
