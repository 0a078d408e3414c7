/*
 * The API server's questions and our answers: AdmissionReview of admission.k8s.io/v1.
 *
 * Pure: a text comes in and a text goes out.
 */
#pragma once

#include <stddef.h>

#include "kubernetes/admission/pod.h"

struct td_text;

#define TD_REVIEW_NAME 320 /* NAMESPACE/NAME, printable; longer ones are cut */

struct td_review {
	enum td_admission_verdict verdict;
	char pod[TD_REVIEW_NAME];
	char reason[TD_ERR_MSG_MAX]; /* of a refusal, printable */
};

/*
 * Answers a question with the text of an AdmissionReview. Pods that are created or changed are
 * judged; whatever else is done to a pod is allowed. Returns 0; -EINVAL with err for a text that is
 * not such a question about a pod; -ENOMEM.
 */
int td_review_answer(const struct td_admission_options *options, const char *body, size_t length,
	struct td_text *ret, struct td_review *ret_review, struct td_err *err);
