{{- /* Rules of the operator's own account. */}}
{{- define "amd.managerRules" -}}
- {apiGroups: [""], resources: [configmaps, secrets, services], verbs: [create, delete, get, list, patch, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, patch, watch]}
- {apiGroups: [""], resources: [nodes/finalizers, nodes/status], verbs: [get, update, watch]}
- {apiGroups: [""], resources: [pods], verbs: [create, delete, get, list, watch]}
- {apiGroups: [""], resources: [pods/eviction], verbs: [create, delete, get, list]}
- {apiGroups: [""], resources: [pods/finalizers, pods/status], verbs: [delete, get, list, watch]}
- {apiGroups: [""], resources: [services/finalizers], verbs: [create, get, update, watch]}
- apiGroups: [amd.com]
  resources: [deviceconfigs, remediationworkflowstatuses]
  verbs: [create, get, list, patch, update, watch]
- apiGroups: [amd.com]
  resources: [deviceconfigs/finalizers, remediationworkflowstatuses/finalizers]
  verbs: [update]
- apiGroups: [amd.com]
  resources: [deviceconfigs/status, remediationworkflowstatuses/status]
  verbs: [get, patch, update]
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [delete, get, list, watch]}
- {apiGroups: [apps], resources: [daemonsets, daemonsets/status], verbs: [create, delete, get, list, patch, watch]}
- {apiGroups: [apps], resources: [daemonsets/finalizers], verbs: [create, get, update, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [create, delete, get, list, patch, update, watch]}
- {apiGroups: [kmm.sigs.x-k8s.io], resources: [modules], verbs: [create, delete, get, list, patch, update, watch]}
- apiGroups: [kmm.sigs.x-k8s.io]
  resources: [modules/finalizers, nodemodulesconfigs/finalizers]
  verbs: [get, update, watch]
- {apiGroups: [kmm.sigs.x-k8s.io], resources: [modules/status], verbs: [get, patch, update]}
- apiGroups: [kmm.sigs.x-k8s.io]
  resources: [nodemodulesconfigs, nodemodulesconfigs/status]
  verbs: [get, list, watch]
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [create, delete, get, list, patch, update, watch]
- {apiGroups: [nfd.openshift.io], resources: [nodefeaturediscoveries], verbs: [delete, get, list]}
- apiGroups: [nfd.openshift.io]
  resources: [nodefeaturediscoveries/finalizers, nodefeaturediscoveries/status]
  verbs: [get, update]
- {apiGroups: [resource.k8s.io], resources: [deviceclasses], verbs: [create]}
{{ include "amd.privilegedRules" . }}
{{- end }}

{{- define "amd.privilegedRules" -}}
- apiGroups: [security.openshift.io]
  resources: [securitycontextconstraints]
  resourceNames: [privileged]
  verbs: [use]
{{- end }}

{{- define "amd.nodeRules" -}}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, update, watch]}
{{- end }}

{{- define "amd.podRules" -}}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
{{- end }}
