/* The stream of server-sent events of each page; see http.h. */
#pragma once

struct MHD_Connection;
struct MHD_Response;
struct td_http;

/* Returns the endless answer to one page, or NULL. */
struct MHD_Response *td_stream_response(struct td_http *http, struct MHD_Connection *connection);
/* Resumes pages that have read everything, since the feed has something new. */
void td_stream_update(struct td_http *http);
/* Resumes all pages before the server ends. */
void td_stream_wake_all(struct td_http *http);
