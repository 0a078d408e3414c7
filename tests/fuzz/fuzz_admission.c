/* Arbitrary questions of an API server. An answer is JSON with the uid, or there is an error. */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "kubernetes/admission/review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct td_admission_options options = {"tandem.dev/gpu", "tandem"};
	struct td_review review = {0};
	struct td_text text = {0};
	struct td_err err = {0};
	int r = td_review_answer(&options, (const char *)data, size, &text, &review, &err);
	json_t *answer, *response;

	assert(r == 0 || r == -EINVAL || r == -ENOMEM);
	assert(r != -EINVAL || *err.msg);
	if (!r) {
		answer = json_loadb(text.text, text.length, JSON_REJECT_DUPLICATES, NULL);
		response = json_object_get(answer, "response");
		assert(json_is_string(json_object_get(response, "uid")));
		assert(json_is_true(json_object_get(response, "allowed")) ==
			(review.verdict != TD_ADMISSION_REFUSED));
		assert((json_object_get(response, "patch") != NULL) ==
			(review.verdict == TD_ADMISSION_CHANGED));
		json_decref(answer);
	}
	td_text_deinit(&text);
	return 0;
}
