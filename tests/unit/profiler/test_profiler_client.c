/* The HTTP client of campaigns: its connections end with it. */
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"
#include "profiler/service/client.h"

static unsigned open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int listen_at_any_port(uint16_t *ret_port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(!bind(fd, (struct sockaddr *)&address, len) && !listen(fd, 8));
	CHECK(!getsockname(fd, (struct sockaddr *)&address, &len));
	*ret_port = ntohs(address.sin_port);
	return fd;
}

TEST(no_connection_outlives_the_client)
{
	uint16_t port;
	int listener = listen_at_any_port(&port);
	unsigned before = open_descriptors();
	struct client client;
	struct td_err err;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
	CHECK_EQ(client_init(&client, url, NULL, 3, TD_NS_PER_S, &err), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(client_ask(&client, td_time_now_ns()), 0);
	CHECK_EQ(open_descriptors(), before + 4); /* three connections, and epoll's */
	client_deinit(&client);
	CHECK_EQ(open_descriptors(), before);
	close(listener);
}

TEST(an_url_that_names_no_host_is_refused)
{
	struct client client;
	struct td_err err;

	CHECK_EQ(client_init(&client, "http:///x", NULL, 1, TD_NS_PER_S, &err), -EINVAL);
	CHECK(strstr(err.msg, "names no host"));
	client_deinit(&client);
	CHECK_EQ(client_init(&client, "ftp://a/", NULL, 1, TD_NS_PER_S, &err), -EINVAL);
	CHECK(strstr(err.msg, "\"ftp://a/\""));
	client_deinit(&client);
}
