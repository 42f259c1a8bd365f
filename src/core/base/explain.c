/* The explanation of an error code, and the version of px. */
#include <px/px.h>

#include "base/err.h"

PX_API int px_explain(int code, struct px_explain *ret_text)
{
    const struct px_error_text *t = px_err_find(code);
    if (!t)
        return -1;
    *ret_text = (struct px_explain){t->code, t->name, t->what, t->why, t->fix};
    return 0;
}

PX_API int px_explain_next(int code)
{
    for (const struct px_error_text *t = px_error_texts; t->code; t++)
        if (t->code > code)
            return t->code;
    return 0;
}

PX_API const char *px_version(void)
{
    return PX_VERSION;
}
