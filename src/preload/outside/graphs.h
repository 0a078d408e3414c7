/*
 * The content of executable graphs, recorded when they are instantiated and looked up at each
 * launch.
 */
#pragma once

void td_graphs_forked(void);
