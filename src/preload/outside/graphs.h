/* What executable graphs hold: known from their instantiation on, looked up at each launch. */
#pragma once

void td_graphs_forked(void);
