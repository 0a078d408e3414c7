/* Finds the SMs that protected jobs leave; see sms.h. */
#include "policy/node/beside/sms.h"

#include "policy/algo/fit/slo_share.h"
#include "policy/node/moves.h"

uint32_t td_sms_left_ppm(const struct td_view *view, uint32_t gpu, enum td_class up_to)
{
	uint64_t need = 0;
	bool some = false;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu || client->class > up_to)
			continue;
		some = true;
		need += client->sm_need_ppm ? client->sm_need_ppm : TD_PPM;
	}
	if (!some)
		return 0;
	return td_dynamic_sm_ppm(&td_dynamic_sm_default, need < TD_PPM ? (uint32_t)need : TD_PPM);
}

/* -- another share for work that runs -- */

static uint32_t in_steps(uint32_t ppm)
{
	uint32_t steps = ppm / TD_RESHARE_STEP_PPM;

	return (steps ? steps : 1) * TD_RESHARE_STEP_PPM;
}

static uint64_t rests_until_ns(const struct td_client_view *client, bool grows)
{
	uint64_t rest_ns = TD_MOVES_REST_MIN_NS;

	if (!client->reshared_ns)
		return 0;
	if (grows && client->reshare_pause_ns > TD_MOVES_REST_MIN_NS / TD_MOVES_REST_TIMES)
		rest_ns = client->reshare_pause_ns < TD_NEVER / TD_MOVES_REST_TIMES
				  ? client->reshare_pause_ns * TD_MOVES_REST_TIMES
				  : TD_NEVER;
	return rest_ns < TD_NEVER - client->reshared_ns ? client->reshared_ns + rest_ns : TD_NEVER;
}

uint32_t td_sms_reshare(struct td_reshare *reshare, const struct td_client_view *client,
	uint32_t left_ppm, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	uint32_t has = client->sm_share_ppm ? client->sm_share_ppm : TD_PPM;
	uint32_t left = left_ppm ? left_ppm : TD_PPM;
	bool grows = in_steps(left) >= has + TD_RESHARE_STEP_PPM,
	     shrinks = left + TD_RESHARE_STEP_PPM / 2 <= has;
	uint64_t due_ns, rest_ns = rests_until_ns(client, grows);

	if (!client->reshares || !(grows || shrinks)) {
		*reshare = (struct td_reshare){0};
		return 0;
	}
	if (!reshare->wanted || reshare->grows != grows || reshare->client != client->id)
		*reshare = (struct td_reshare){.client = client->id,
			.wanted = true,
			.grows = grows,
			.least_ppm = left,
			.since_ns = now_ns};
	reshare->least_ppm = left < reshare->least_ppm || !grows ? left : reshare->least_ppm;
	due_ns = reshare->since_ns + (grows ? TD_RESHARE_GROW_NS : TD_RESHARE_SHRINK_NS);
	due_ns = due_ns > rest_ns ? due_ns : rest_ns;
	if (now_ns < due_ns) {
		*ret_wakeup_ns = due_ns < *ret_wakeup_ns ? due_ns : *ret_wakeup_ns;
		return 0;
	}
	return in_steps(reshare->least_ppm);
}
