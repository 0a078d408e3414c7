/* Writes a JSON array of objects piece by piece. Strings are escaped. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct td_json {
	FILE *out;
	unsigned rows, fields;
};
void td_json_begin(struct td_json *json, FILE *out);
void td_json_row(struct td_json *json);
/* Begins a field. The caller writes its value: another array, or anything else. */
void td_json_key(struct td_json *json, const char *key);
void td_json_str(struct td_json *json, const char *key, const char *value);
void td_json_u64(struct td_json *json, const char *key, uint64_t value);
void td_json_double(struct td_json *json, const char *key, double value);
void td_json_end_row(struct td_json *json);
void td_json_end(struct td_json *json);
