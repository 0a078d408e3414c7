/* This file implements json.h. */
#include "cli/json.h"

#include "base/program.h"

void td_json_begin(struct td_json *json, FILE *out)
{
	*json = (struct td_json){.out = out};
	fputc('[', out);
}

void td_json_row(struct td_json *json)
{
	fputs(json->rows++ ? ",\n {" : "\n {", json->out);
	json->fields = 0;
}

void td_json_key(struct td_json *json, const char *name)
{
	fprintf(json->out, "%s\"%s\": ", json->fields++ ? ", " : "", name);
}

void td_json_str(struct td_json *json, const char *name, const char *value)
{
	td_json_key(json, name);
	fputc('"', json->out);
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(json->out, "\\%c", *p);
		else if (*p < 0x20)
			fprintf(json->out, "\\u%04x", *p);
		else
			fputc(*p, json->out);
	}
	fputc('"', json->out);
}

void td_json_u64(struct td_json *json, const char *name, uint64_t value)
{
	td_json_key(json, name);
	fprintf(json->out, "%llu", (unsigned long long)value);
}

void td_json_double(struct td_json *json, const char *name, double value)
{
	td_json_key(json, name);
	fprintf(json->out, "%.6g", value);
}

void td_json_end_row(struct td_json *json)
{
	fputc('}', json->out);
	td_output_flush();
}

void td_json_end(struct td_json *json)
{
	fputs(json->rows ? "\n]\n" : "]\n", json->out);
}
