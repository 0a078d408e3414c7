/* Makes Mudi's services and tasks from measured tables; see zoo.h. */
#include "sim/engine/zoo.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "policy/algo/fit/curve.h"
#include "sim/base/csv.h"
#include "sim/base/random.h"

#define BATCHES 9 /* the batches are 1 to 256 */
#define SHARES  5

static const struct {
	const char *name, *presses_as;
	double interference;
} services[TD_ZOO_SERVICES] = {
	{"resnet50", "ResNet-50 (batch size 64)", 1.21},
	{"inceptionv3", "ResNet-50 (batch size 64)", 1.44},
	{"vgg19", "ResNet-50 (batch size 64)", 1.67},
	{"bert", "Transformer (batch size 64)", 1.44},
	{"densenet201", "ResNet-50 (batch size 64)", 1.44},
	{"resnet152", "ResNet-50 (batch size 64)", 1.44},
};

/*
 * The columns count layers: conv, linear, activations, embeddings, encoder, decoder, flatten, batch
 * norm, fc, pooling, other.
 */
static const struct {
	const char *name, *as;
	double layers[TD_MUDI_LAYERS], percent;
	int class;
} tasks[TD_ZOO_TASKS] = {
	{"VGG16", "ResNet-50 (batch size 32)", {13, 0, 15, 0, 0, 0, 1, 0, 3, 5, 2}, 14, 0},
	{"SqueezeNet", "ResNet-18 (batch size 64)", {26, 0, 26, 0, 0, 0, 1, 0, 0, 4, 9}, 14, 0},
	{"ResNet50", "ResNet-50 (batch size 64)", {53, 0, 49, 0, 0, 0, 1, 53, 1, 2, 0}, 14, 0},
	{"NCF", "Recommendation (batch size 2048)", {0, 4, 4, 4, 0, 0, 0, 0, 0, 0, 1}, 12, 1},
	{"LSTM", "LM (batch size 20)", {0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 3}, 12, 1},
	{"AD-GCL", "A3C", {0, 12, 10, 2, 1, 0, 0, 5, 0, 1, 5}, 12, 1},
	{"Bert", "Transformer (batch size 64)", {0, 74, 13, 3, 12, 0, 0, 0, 1, 1, 63}, 12, 2},
	{"YOLOv5", "CycleGAN", {60, 0, 57, 0, 0, 0, 0, 57, 0, 3, 15}, 10, 2},
	{"ResNet18", "ResNet-18 (batch size 128)", {20, 0, 17, 0, 0, 0, 1, 20, 1, 2, 0}, 2, 3},
};

struct table {
	double latency_s[SHARES][BATCHES]; /* 0: the batch does not fit */
	double most_per_s;
};

static int take_row(struct td_csv *csv, const int *at, struct table *tables, struct td_err *err)
{
	static const double gpcs[SHARES] = {1, 2, 3, 4, 7};
	/* Columns of the file: gpcs, batch, processes, throughput, latency, feasible. */
	double value[6];
	int r = 0, kind = -1;

	for (int s = 0; s < (int)TD_ZOO_SERVICES; s++)
		if (!strcmp(td_csv_text(csv, at[0]), services[s].name))
			kind = s;
	for (int c = 0; !r && c < 6; c++)
		r = td_csv_number(csv, at[1 + c], 0, 1e6, &value[c], err);
	if (r || kind < 0 || value[2] > 1 || !(value[5] > 0))
		return r;
	for (int s = 0; s < SHARES; s++) {
		int b = (int)(log2(fmax(1, value[1])) + 0.5);

		if (value[0] < gpcs[s] - 0.1 || value[0] > gpcs[s] + 0.1 || b >= BATCHES)
			continue;
		tables[kind].latency_s[s][b] = value[4];
		if (s == SHARES - 1)
			tables[kind].most_per_s = fmax(tables[kind].most_per_s, value[3]);
	}
	return 0;
}

static int read_tables(const char *data, struct table *tables, struct td_err *err)
{
	static const char *const needed[] = {"model", "mig_gpcs", "batch_size", "num_processes",
		"throughput_per_process_rps", "latency_s", "feasible"};
	char path[PATH_MAX];
	struct td_csv csv;
	int at[7], r;

	snprintf(path, sizeof(path), "%s/infer_parvagpu_a100_mig.csv", data);
	r = td_csv_open(&csv, path, err);
	if (r)
		return r;
	r = td_csv_need(&csv, needed, 7, at, err);
	while (!r && !(r = td_csv_next(&csv, err)))
		r = take_row(&csv, at, tables, err);
	td_csv_close(&csv);
	return r < 0 ? r : 0;
}

/* Fits a line through the batches from 32 on, and a constant below it for small batches. */
static void fit_batches(const struct table *table, struct td_service_kind *kind)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0;

	kind->least_s = INFINITY;
	for (int b = 0; b < BATCHES; b++) {
		double batch = exp2(b), s = table->latency_s[SHARES - 1][b];

		if (!(s > 0))
			continue;
		kind->least_s = fmin(kind->least_s, s);
		if (b < 5)
			continue;
		n++;
		x += batch;
		y += s;
		xx += batch * batch;
		xy += batch * s;
	}
	kind->each_s = (n * xy - x * y) / (n * xx - x * x);
	kind->fixed_s = fmax(0, (y - kind->each_s * x) / n);
}

/*
 * Returns the serial part, which does not get faster with a larger share: its median over the
 * batches from 16 to 64.
 */
static double fit_serial(const struct table *table)
{
	static const double shares[SHARES] = {1 / 7., 2 / 7., 3 / 7., 4 / 7., 1};
	double parts[3];
	int n = 0;

	for (int b = 4; b <= 6; b++) {
		double x[SHARES], y[SHARES];
		struct td_curve curve;
		uint32_t count = 0;

		for (int s = 0; s < SHARES; s++) {
			if (!(table->latency_s[s][b] > 0))
				continue;
			x[count] = shares[s];
			y[count++] = table->latency_s[s][b];
		}
		if (!td_curve_fit_hyperbola(x, y, count, &curve))
			parts[n++] = curve.a / (curve.a + curve.b);
	}
	if (n == 3)
		return fmax(fmin(parts[0], parts[1]), fmin(fmax(parts[0], parts[1]), parts[2]));
	return n ? parts[0] : 0.3;
}

static int find_gavel_job(const struct td_profiles *gavel, const char *name,
	struct td_contender *ret, struct td_err *err)
{
	int at = td_profiles_find(gavel, name);

	if (at < 0)
		return td_err_set(err, -ENOENT, "there is no profile of the job %s", name);
	*ret = gavel->profiles[at].contender;
	ret->serial = TD_ZOO_SERIAL;
	return 0;
}

static int make_tasks(const struct td_profiles *gavel, struct td_zoo *zoo, struct td_err *err)
{
	double sum = 0;

	for (uint32_t t = 0; t < TD_ZOO_TASKS; t++) {
		struct td_sim_profile *task = &zoo->tasks.profiles[t];
		int r = find_gavel_job(gavel, tasks[t].as, &task->contender, err);

		if (r)
			return r;
		task->told_demand = task->contender.demand;
		snprintf(task->name, sizeof(task->name), "%s", tasks[t].name);
		memcpy(zoo->layers[t], tasks[t].layers, sizeof(zoo->layers[t]));
		zoo->classes[t] = tasks[t].class;
		sum += tasks[t].percent;
	}
	for (uint32_t t = 0; t < TD_ZOO_TASKS; t++)
		zoo->fractions[t] = tasks[t].percent / sum;
	zoo->tasks.profiles[TD_ZOO_NOTEBOOK] = (struct td_sim_profile){"notebook",
		{.sensitivity = 0.3,
			.pressure = 0.1,
			.host = 0.05,
			.serial = 0.9,
			.share = 1,
			.duty = 1,
			.demand = 0.08},
		.told_demand = 0.08};
	zoo->layers[TD_ZOO_NOTEBOOK][1] = 3;
	zoo->layers[TD_ZOO_NOTEBOOK][2] = 3;
	zoo->tasks.count = TD_ZOO_KINDS;
	return 0;
}

static int make_service(const struct td_profiles *gavel, const struct table *table, uint32_t s,
	struct td_zoo *zoo, struct td_err *err)
{
	struct td_service_kind *kind = &zoo->services[s];
	double pressure = 0, rate;
	int r = find_gavel_job(gavel, services[s].presses_as, &kind->contender, err);

	if (r)
		return r;
	if (!(table->most_per_s > 0))
		return td_err_set(err, -ENOENT, "there are no measurements of the service %s",
			services[s].name);
	snprintf(kind->name, sizeof(kind->name), "%s", services[s].name);
	fit_batches(table, kind);
	for (uint32_t t = 0; t < TD_ZOO_TASKS; t++)
		pressure += zoo->tasks.profiles[t].contender.pressure / TD_ZOO_TASKS;
	kind->contender.sensitivity = (services[s].interference - 1) / pressure;
	kind->told_demand = kind->contender.demand;
	kind->contender.host = 0;
	kind->contender.serial = fit_serial(table);
	zoo->most_per_s[s] = table->most_per_s;
	rate = 0.15 * table->most_per_s;
	kind->objective_s = 3 * (15 / rate + td_service_batch_s(kind, 16));
	return 0;
}

int td_zoo_read(const char *data, struct td_zoo *ret, struct td_err *err)
{
	static struct td_profiles gavel;
	struct table tables[TD_ZOO_SERVICES] = {0};
	int r = td_profiles_fit(data, "p100", &gavel, err);

	*ret = (struct td_zoo){.tasks = {.count = 0}};
	r = r ? r : read_tables(data, tables, err);
	r = r ? r : make_tasks(&gavel, ret, err);
	for (uint32_t s = 0; !r && s < TD_ZOO_SERVICES; s++)
		r = make_service(&gavel, &tables[s], s, ret, err);
	return r;
}

void td_zoo_rates(
	const struct td_zoo *zoo, uint32_t kind, double load, uint64_t *random, float *ret_rates)
{
	uint32_t level = td_random_below(random, 6);

	for (uint32_t i = 0; i < TD_ZOO_INTERVALS; i++) {
		uint32_t step = td_random_below(random, 3);

		level = step == 0 && level ? level - 1 : step == 2 && level < 5 ? level + 1 : level;
		ret_rates[i] =
			(float)(0.15 * zoo->most_per_s[kind] * load * (2 / 3. + level * 2 / 15.));
	}
}

uint32_t td_zoo_draw_task(const struct td_zoo *zoo, uint64_t *random)
{
	double at = td_random_unit(random);
	uint32_t t = 0;

	while (t + 1 < TD_ZOO_TASKS && at >= zoo->fractions[t])
		at -= zoo->fractions[t++];
	return t;
}
