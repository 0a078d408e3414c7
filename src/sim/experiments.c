/* The table of experiments. */
#include "sim/experiment.h"

const struct td_experiment td_experiments[] = {
	{NULL, NULL, false, NULL},
};
