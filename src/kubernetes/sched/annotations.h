/*
 * The annotations of a pod that tandem-kube-sched writes when it binds the pod. Nobody else may
 * write them: whoever did would claim a place that nobody gave it.
 */
#pragma once

#define TD_KUBE_DOMAIN "tandem.dev/"

#define TD_KUBE_GPU_INDEX TD_KUBE_DOMAIN "gpu-index" /* its GPUs on the node: "0", "2,3" */
#define TD_KUBE_SHARE     TD_KUBE_DOMAIN "share"     /* hundredths of each of these */
#define TD_KUBE_EPOCH     TD_KUBE_DOMAIN "epoch"     /* the number of the placement */
#define TD_KUBE_GUEST     TD_KUBE_DOMAIN "guest"     /* "true": it has what the holder leaves */

#define TD_KUBE_PLACEMENT(X) X(TD_KUBE_GPU_INDEX) X(TD_KUBE_SHARE) X(TD_KUBE_EPOCH) X(TD_KUBE_GUEST)

/* These its user writes, and they stay as they were when the pod was made. */
#define TD_KUBE_CLASS     TD_KUBE_DOMAIN "class"
#define TD_KUBE_GANG      TD_KUBE_DOMAIN "gang"      /* pods of one name are placed all or none */
#define TD_KUBE_GANG_SIZE TD_KUBE_DOMAIN "gang-size" /* the number of these pods */

#define TD_KUBE_WISHES(X) X(TD_KUBE_CLASS) X(TD_KUBE_GANG) X(TD_KUBE_GANG_SIZE)
