/* The table of objects that have twins, for record.c, adapt.c and twins.c. See rehome.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/rehome/rehome.h"

/* The kinds of objects; the letters are those of cuda/symbols.def. */
enum td_twin_kind {
	TD_TWIN_CONTEXT = 'c',
	TD_TWIN_STREAM = 's',
	TD_TWIN_EVENT = 'e',
	TD_TWIN_MODULE = 'm',
	TD_TWIN_FUNCTION = 'f',
	TD_TWIN_KERNEL = 'k',  /* belongs to no context; attributes are set per device */
	TD_TWIN_LIBRARY = 'l', /* belongs to no context; may have variables */
};

/* The settings made by cuFuncSetAttribute and cuFuncSetCacheConfig for a function or kernel. */
#define TD_TWIN_SETS_MAX 16
struct td_twin_set {
	int what, value; /* what: a CUfunction_attribute, or one of these: */
};
#define TD_TWIN_SET_CACHE  (-1)
#define TD_TWIN_SET_SHARED (-2)

struct td_twin {
	struct td_twin *next; /* list of all rows */
	enum td_twin_kind kind;
	int first;                           /* home where the program made it */
	const void *context;                 /* the program's context in which it was made */
	void *_Atomic handles[TD_HOMES_MAX]; /* handle at each home; NULL: no twin there yet */
	/* The next fields are set when the object is made. */
	unsigned flags; /* for streams and events */
	int priority;   /* for streams */
	bool has_variables;
	void *image; /* for modules; owned */
	size_t image_bytes;
	const void *of;       /* for a function: its module or kernel; for a module: its library */
	char *name;           /* for a function of a module; owned */
	bool of_library;      /* made by cuLibraryGetModule or cuKernelGetFunction */
	_Atomic int recorded; /* for an event: home where it was last recorded */
	struct td_twin_set sets[TD_TWIN_SETS_MAX];
	unsigned set_count;
};

/* Gets a copy of the row that has this handle at any home; false: there is none. */
bool td_twin_get(enum td_twin_kind kind, const void *handle, struct td_twin *ret);
/*
 * Adds a row with its first handle, and takes over image and name. Returns false if malloc failed.
 */
bool td_twin_add(const struct td_twin *row);
/*
 * Removes a row; the caller then owns image and name of *ret. A module's functions are removed with
 * it. Returns false if there is no such row.
 */
bool td_twin_remove(enum td_twin_kind kind, const void *handle, struct td_twin *ret);
void td_twin_release(struct td_twin *row);
/* Sets the row's handle at that home. Returns false if it has one there already. */
bool td_twin_set_handle(enum td_twin_kind kind, const void *handle, int home, void *at_home);
void td_twin_set(enum td_twin_kind kind, const void *handle, int what, int value);
void td_twin_set_recorded(const void *event, int home);
/*
 * Returns the row's handle at that home; NULL: none yet. *ret_known: whether there is such a row.
 */
void *td_twin_at(enum td_twin_kind kind, const void *handle, int home, bool *ret_known);
/* Returns the handle that the program has for this object; `handle` itself if there is no row. */
void *td_twin_program(enum td_twin_kind kind, void *handle);
/*
 * Calls visit with a copy of each row, in order of creation and without the lock, until it returns
 * an error, and returns that. Rows added meanwhile may be left out.
 */
int td_twin_each(int (*visit)(const struct td_twin *row, void *arg), void *arg);
/* Returns the number of modules and libraries that have variables. */
uint32_t td_twin_with_variables(void);
/* Returns the number of modules without an image from which a twin could be made. */
uint32_t td_twin_without_image(void);
/* Removes all rows of a context that has ended. */
void td_twins_drop(const void *context);
void td_twins_forked(void);

/*
 * Between these two calls no row is removed, so that images and names in copies stay valid. Held
 * while a twin is made, which may take as long as compiling code does. May be nested.
 */
void td_twins_keep(void);
void td_twins_let_go(void);

/* -- twins.c -- */

/*
 * Returns the object's handle at the current home, and makes the twin if needed; `handle` itself if
 * there is no such object. The context of that home is current.
 */
void *td_twin_here(enum td_twin_kind kind, void *handle);

/* Returns the program's own context for a twin of it; otherwise the given context. */
void *td_rehome_program_context(void *context);

/*
 * If an earlier home's context is current on this thread, makes the current home's current instead.
 */
void td_rehome_sync(void);

/* Gets the milliseconds between two of the program's events. Returns a CUresult. */
CUresult td_twin_elapsed(float *ret_ms, CUevent start, CUevent end, bool v2);
