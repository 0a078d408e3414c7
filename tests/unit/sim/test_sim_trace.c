/* Readers of jobs, requests and nodes: what they take, what they refuse and how they say it. */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "sim/base/csv.h"
#include "sim/data/trace.h"

static struct td_csv csv;
static struct td_err err;
static struct td_trace trace;

static int read_jobs(const char *text, bool skip_bad)
{
	int r;

	err = (struct td_err){0};
	CHECK_EQ(td_csv_open_text(&csv, "jobs.csv", text, strlen(text), &err), 0);
	r = td_trace_take(&csv, skip_bad, &trace, &err);
	td_csv_close(&csv);
	return r;
}

TEST(jobs_of_a_plain_file_are_read)
{
	CHECK_EQ(
		read_jobs("job_id,submit_time_s,duration_s,num_gpus,tenant,class,model,memory_gib\n"
			  "a,10,100.5,2,t1,guaranteed,bert,1.5\nb,20,7,1,t2,,,\n",
			false),
		0);
	CHECK_EQ(trace.count, 2);
	CHECK_STR(td_names_text(&trace.names, trace.jobs[0].id), "a");
	CHECK_STR(td_names_text(&trace.names, trace.jobs[0].tenant), "t1");
	CHECK_STR(td_names_text(&trace.names, trace.jobs[0].model), "bert");
	CHECK_EQ(trace.jobs[0].class, TD_CLASS_GUARANTEED);
	CHECK_EQ(trace.jobs[0].memory_bytes, 3ull << 29);
	CHECK_EQ(trace.jobs[0].gpus, 2);
	CHECK_EQ(trace.jobs[1].class, TD_CLASS_BESTEFFORT);
	CHECK_EQ(trace.jobs[1].model, TD_TRACE_NONE);
	CHECK_EQ(trace.jobs[1].gpu_milli, 1000);
	td_trace_deinit(&trace);
}

TEST(columns_may_have_their_sources_names)
{
	CHECK_EQ(read_jobs("submit_time_s,duration_s,num_gpus,virtual_cluster,qos,gpu_milli,phase\n"
			   "1,,1,vc,LS,460,Pending\n2,5,0,vc,BE,0,Running\n",
			 false),
		0);
	CHECK_EQ(trace.count, 1);
	CHECK_EQ(trace.gpuless, 1);
	CHECK_EQ(trace.undated, 1);
	CHECK(trace.jobs[0].duration_s < 0);
	CHECK_EQ(trace.jobs[0].class, TD_CLASS_ONLINE);
	CHECK_EQ(trace.jobs[0].gpu_milli, 460);
	CHECK_STR(td_names_text(&trace.names, trace.jobs[0].tenant), "vc");
	td_trace_deinit(&trace);
}

TEST(a_file_without_durations_says_so)
{
	CHECK_EQ(read_jobs("submit_time_s,application,num_gpus\n1,bert,4\n", false), 0);
	CHECK(!trace.has_durations);
	CHECK_EQ(trace.undated, 1);
	td_trace_deinit(&trace);
}

TEST(jobs_are_sorted_by_time_and_stay_in_order_otherwise)
{
	CHECK_EQ(
		read_jobs("job_id,submit_time_s,num_gpus\na,5,1\nb,3,1\nc,5,1\nd,3,1\n", false), 0);
	CHECK_STR(td_names_text(&trace.names, trace.jobs[0].id), "b");
	CHECK_STR(td_names_text(&trace.names, trace.jobs[1].id), "d");
	CHECK_STR(td_names_text(&trace.names, trace.jobs[2].id), "a");
	CHECK_STR(td_names_text(&trace.names, trace.jobs[3].id), "c");
	td_trace_deinit(&trace);
}

TEST(a_bad_line_is_named_with_what_was_expected)
{
	static const struct {
		const char *row, *message;
	} bad[] = {
		{"x,1,1,", "jobs.csv:3: submit_time_s is \"x\": expected a number"},
		{"-1,1,1,", "jobs.csv:3: submit_time_s is -1: expected 0 to 10000000000"},
		{"1,-2,1,", "jobs.csv:3: duration_s is -2: expected 0 to 1000000000"},
		{"1,2,1.5,", "jobs.csv:3: num_gpus is \"1.5\": expected a whole number"},
		{"1,2,1,gold",
			"jobs.csv:3: class is \"gold\": expected online, guaranteed or besteffort"},
		{"1,2", "jobs.csv:3: 2 fields: expected 4 as in the header"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text),
			"submit_time_s,duration_s,num_gpus,class\n1,1,1,\n%s\n2,1,1,\n",
			bad[i].row);
		CHECK_EQ(read_jobs(text, false), -EINVAL);
		CHECK_STR(err.msg, bad[i].message);
		CHECK_EQ(read_jobs(text, true), 0);
		CHECK_EQ(trace.count, 2);
		CHECK_EQ(trace.skipped, 1);
		td_trace_deinit(&trace);
	}
	CHECK_EQ(read_jobs("duration_s,num_gpus\n1,1\n", true), -EINVAL);
	CHECK_STR(err.msg, "jobs.csv:1: there is no column submit_time_s");
}

TEST(requests_come_as_times_or_as_gaps)
{
	const char *times =
		"service,arrival_s,context_tokens,generated_tokens\ncode,0.5,100,7\nchat,1,3,4\n";
	const char *gaps = "index,inter_arrival_s\n0,0.25\n1,0.5\n";
	struct td_requests requests;

	CHECK_EQ(td_csv_open_text(&csv, "r.csv", times, strlen(times), &err), 0);
	CHECK_EQ(td_requests_take(&csv, false, &requests, &err), 0);
	td_csv_close(&csv);
	CHECK_EQ(requests.count, 2);
	CHECK_EQ(requests.requests[0].input_tokens, 100);
	CHECK_EQ(requests.requests[1].output_tokens, 4);
	CHECK_STR(td_names_text(&requests.names, requests.requests[1].service), "chat");
	td_requests_deinit(&requests);
	CHECK_EQ(td_csv_open_text(&csv, "r.csv", gaps, strlen(gaps), &err), 0);
	CHECK_EQ(td_requests_take(&csv, false, &requests, &err), 0);
	td_csv_close(&csv);
	CHECK(requests.requests[1].arrival_s > 0.749 && requests.requests[1].arrival_s < 0.751);
	td_requests_deinit(&requests);
}

TEST(nodes_have_gpus)
{
	const char *text = "node,num_gpus,gpu_model,gpu_memory_gib\nn1,8,v100,32\nn2,0,,\n";
	struct td_nodes nodes;

	CHECK_EQ(td_csv_open_text(&csv, "n.csv", text, strlen(text), &err), 0);
	CHECK_EQ(td_nodes_take(&csv, false, &nodes, &err), 0);
	td_csv_close(&csv);
	CHECK_EQ(nodes.count, 2);
	CHECK_EQ(nodes.gpus, 8);
	CHECK_EQ(nodes.nodes[0].gpu_memory_bytes, 32ull << 30);
	td_nodes_deinit(&nodes);
}
