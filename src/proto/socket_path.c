/* Finds the daemon's socket, for callers that can show an error; see socket.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/err.h"
#include "proto/socket.h"

#define PATH_BYTES (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

int td_socket_check(const char *where, const char *value, unsigned more, struct td_err *err)
{
	size_t len = strlen(value);

	if (*value != '/')
		return td_err_set(err, -EINVAL,
			"%s: \"%.256s\" is not valid: expected a path that begins with /, as "
			"programs change their folder",
			where, value);
	if (len + more <= PATH_BYTES)
		return 0;
	return td_err_set(err, -ENAMETOOLONG,
		"%s: \"%.256s\" is %zu bytes long: expected a path of at most %zu, which is what "
		"a socket's name has room for",
		where, value, len, PATH_BYTES - more);
}

int td_socket_path_typed(char *ret, size_t len, struct td_err *err)
{
	static const char below[] = "/tandem/socket";
	const char *value = getenv("TANDEM_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");
	int r = 0;

	if (value && *value)
		r = td_socket_check("TANDEM_SOCKET", value, 0, err);
	else if (dir && *dir)
		r = td_socket_check("XDG_RUNTIME_DIR", dir, sizeof(below) - 1, err);
	if (!r && !td_socket_path(ret, len))
		r = td_err_set(err, -ENAMETOOLONG, "the socket's path is too long");
	return r;
}
