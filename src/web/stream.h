/* The stream of server-sent events of each page; see http.h. */
#pragma once

struct MHD_Connection;
struct MHD_Response;
struct td_http;

/* The endless answer to one page, or NULL. */
struct MHD_Response *td_stream_response(struct td_http *http, struct MHD_Connection *connection);
/* The feed has something new: pages that have read everything go on. */
void td_stream_update(struct td_http *http);
/* Before the end: nobody waits any more. */
void td_stream_wake_all(struct td_http *http);
