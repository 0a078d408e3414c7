/* Threads of our own in somebody else's process: every signal blocked, detached, a name that tells whose they are. */
#pragma once

/* 0 or -errno. */
int td_thread_start(void *(*run)(void *arg));
