/* Frees models; see model.h. */
#include "profile/model.h"

#include <stdlib.h>

void td_model_deinit(struct td_model *model)
{
	if (!model)
		return;
	free(model->memory);
	*model = (struct td_model){0};
}
