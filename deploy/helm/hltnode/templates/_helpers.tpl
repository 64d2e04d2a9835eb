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

{{- define "hltnode.config" -}}
{{- .Values.config | default (.Files.Get "files/node.toml") -}}
{{- end }}
