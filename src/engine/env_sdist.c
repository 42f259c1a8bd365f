/* Source archives. */
#include "base/err.h"
#include "engine/env_inside.h"

int px_env_sdist(struct px_env_work *w, const struct px_env_package *p, int *ret_wheel, char *file_name, size_t size, struct px_err *e)
{
    (void)w;
    (void)ret_wheel;
    (void)file_name;
    (void)size;
    (void)px_fail(e, PX_E_BUILD, 0, "%s %s comes as a source archive, which px does not build", p->name, p->version);
    (void)px_why(e, "None of the lock's wheels for it fits the Python of the base (%s).", p->file);
    return px_fix(e, "Build it elsewhere (`pip wheel %s==%s`), give the directory of the wheel by --find-links, and run `px sync`.", p->name,
                  p->version);
}
