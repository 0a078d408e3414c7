/* The commands of nvidia-cuda-mps-control. */
#include "test.h"

#include <errno.h>

#include "softgpu/mps/command.h"
#include "softgpu/server/mps_pipe.h"

static struct sg_mps_command command;
static char error[256];

static int parse(const char *line)
{
	command = (struct sg_mps_command){0};
	error[0] = 0;
	return sg_mps_command_parse(line, &command, error, sizeof(error));
}

TEST(commands_are_read_with_their_arguments)
{
	CHECK_EQ(parse("get_server_list"), 0);
	CHECK_EQ(command.verb, SG_MPS_VERB_get_server_list);
	CHECK_EQ(parse("  terminate_client 12  34\n"), 0);
	CHECK_EQ(command.verb, SG_MPS_VERB_terminate_client);
	CHECK_EQ(command.server, 12);
	CHECK_EQ(command.client, 34);
	CHECK_EQ(parse("set_active_thread_percentage 12 37.5"), 0);
	CHECK_EQ(command.server, 12);
	CHECK(command.percent > 37.49 && command.percent < 37.51);
	CHECK_EQ(parse("set_default_active_thread_percentage 100"), 0);
	CHECK_EQ(command.server, 0);
	CHECK_EQ(parse("start_server -uid 1000"), 0);
	CHECK_EQ(command.uid, 1000);
}

TEST(the_end_comes_with_or_without_force)
{
	CHECK_EQ(parse("quit"), 0);
	CHECK(!command.force);
	CHECK_EQ(parse("quit -t 5"), 0);
	CHECK(command.force);
	CHECK_EQ(command.seconds, 5);
	CHECK_EQ(parse("shutdown_server 12"), 0);
	CHECK(!command.force);
	CHECK_EQ(parse("shutdown_server 12 -f"), 0);
	CHECK(command.force);
	CHECK_EQ(command.seconds, 0);
}

TEST(memory_limits_are_of_devices)
{
	uint64_t limits[SG_MPS_GPUS_MAX];

	CHECK_EQ(parse("set_default_device_pinned_mem_limit 1 2G"), 0);
	CHECK_EQ(command.device, 1);
	CHECK_EQ(command.bytes, 2ll << 30);
	CHECK_EQ(parse("set_device_pinned_mem_limit 12 0 512M"), 0);
	CHECK_EQ(command.server, 12);
	CHECK_EQ(parse("set_default_device_pinned_mem_limit 64 2G"), -EINVAL);
	CHECK_EQ(parse("set_default_device_pinned_mem_limit 0 0"), -EINVAL);
	CHECK_EQ(sg_mps_parse_limits("0=1G,3=512M", limits), 0);
	CHECK_EQ(limits[0], 1ll << 30);
	CHECK_EQ(limits[1], 0);
	CHECK_EQ(limits[3], 512ll << 20);
	CHECK_EQ(sg_mps_parse_limits("0=1G,x=512M", limits), -EINVAL);
	CHECK_EQ(limits[0], 0);
	CHECK_EQ(sg_mps_parse_limits("64=1G", limits), -EINVAL);
	CHECK_EQ(sg_mps_parse_limits("0=", limits), -EINVAL);
}

TEST(what_is_wrong_is_quoted)
{
	CHECK_EQ(parse("get_server_lost"), -EINVAL);
	CHECK_STR(error, "\"get_server_lost\" is not a command: see \"help\"");
	CHECK_EQ(parse("get_server_status me"), -EINVAL);
	CHECK_STR(error, "get_server_status: me: expected get_server_status PID");
	CHECK_EQ(parse("get_server_status"), -EINVAL);
	CHECK_EQ(parse("get_server_status 1 2"), -EINVAL);
	CHECK_EQ(parse("set_default_active_thread_percentage 0"), -EINVAL);
	CHECK_EQ(parse("set_default_active_thread_percentage 101"), -EINVAL);
	CHECK_EQ(parse("set_default_active_thread_percentage nan"), -EINVAL);
	CHECK_EQ(parse("start_server 5"), -EINVAL);
	CHECK_EQ(parse("start_server -uid"), -EINVAL);
	CHECK_EQ(parse("quit -t"), -EINVAL);
	CHECK_EQ(parse("quit -t x"), -EINVAL);
	CHECK_EQ(parse(""), -EINVAL);
	CHECK_EQ(parse("a b c d e f g h"), -EINVAL);
}

TEST(help_names_every_command)
{
	char text[1024];

	CHECK(strstr(sg_mps_command_help(text, sizeof(text)), "terminate_client SERVER CLIENT\n"));
	CHECK(strstr(text, "quit [-t SECONDS]\n"));
	sg_mps_command_help(text, 20);
	CHECK(strlen(text) < 20);
}
