/* The API server and the service account of the pod in which a program runs. */
#pragma once

#include "kubernetes/sched/api.h"
#include "kubernetes/sched/read.h"

struct td_err;

struct td_kube_found {
	struct td_kube_account account;
	char server[256];
	char space[TD_KUBE_NAME]; /* the account's namespace; "": it is not in a pod */
};

/*
 * Fills in what `given` does not say: of the environment, and of the files that Kubernetes mounts.
 * Returns 0, or -EINVAL with err where no server is known. The result points into *ret.
 */
int td_kube_account_find(
	const struct td_kube_account *given, struct td_kube_found *ret, struct td_err *err);
