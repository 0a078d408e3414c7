/* The content of executable graphs: recorded at their instantiation, looked up at each launch. */
#pragma once

void td_graphs_forked(void);
