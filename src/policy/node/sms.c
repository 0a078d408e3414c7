/* Finds the SMs that protected jobs leave; see sms.h. */
#include "policy/node/sms.h"

#include "policy/algo/fit/slo_share.h"

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
