/* The reasons why a job waits, as words; see brain.h. */
#include <stdio.h>

#include "cluster/brain/parts.h"

static const char *const sentences[TD_BRAIN_WHY_N] = {
#define WHY(name, sentence) sentence,
#include "cluster/brain/why.def"
#undef WHY
};

const char *td_brain_sentence(enum td_brain_why why)
{
	return sentences[why];
}

static uint32_t largest_node(const struct td_brain *b, uint32_t pool)
{
	uint32_t most = 0;

	for (uint32_t n = 0; n < b->nodes.max; n++)
		if (*b->nodes.name[n] && !b->node[n].closed && b->node[n].gpus > most &&
			(pool == TD_ANYWHERE || !(b->node[n].not_in >> pool & 1)))
			most = b->node[n].gpus;
	return most;
}

enum td_brain_why td_brain_why(const struct td_brain *b, uint32_t at)
{
	const struct td_brain_job *job = td_brain_job(b, at);
	const struct td_brain_request *request;

	if (!job || job->phase != TD_BRAIN_WAITING)
		return TD_WHY_NOTHING;
	request = &job->request;
	if (!b->revision)
		return TD_WHY_NO_LEADER;
	if (request->guaranteed && request->gpus > b->params.shape.quotas[job->tenant])
		return TD_WHY_OVER_QUOTA;
	if (request->gpus > b->up)
		return TD_WHY_TOO_LARGE;
	if (!largest_node(b, request->pool))
		return TD_WHY_NO_NODE;
	if (request->same_node && request->gpus > largest_node(b, request->pool))
		return TD_WHY_NODE_TOO_SMALL;
	if (request->guaranteed && request->gpus > b->policy->quota_left(b->state, job->tenant))
		return TD_WHY_QUOTA;
	switch (b->policy->waits && job->known ? b->policy->waits(b->state, at)
					       : TD_GUEST_WAITS_FOR_PLACE) {
	case TD_GUEST_WAITS_FOR_PROFILE: return TD_WHY_PROFILE;
	case TD_GUEST_WAITS_FOR_MATCHING: return TD_WHY_MATCHING;
	case TD_GUEST_WAITS_FOR_PLACE: break;
	}
	return request->gpus > 1 ? TD_WHY_GANG : TD_WHY_PLACE;
}

char *td_brain_explain(const struct td_brain *b, uint32_t at, char *ret, size_t len)
{
	const struct td_brain_job *job = td_brain_job(b, at);
	enum td_brain_why why = td_brain_why(b, at);

	*ret = 0;
	if (job && why != TD_WHY_NOTHING)
		snprintf(ret, len, "%s%s%s", td_brain_sentence(why),
			job->back == TD_WHY_NEW ? "" : "; ",
			job->back == TD_WHY_NEW ? "" : td_brain_sentence(job->back));
	return ret;
}
