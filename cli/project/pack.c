/* px pack: a project as an image. */
#include "cli/project/project.h"

static const char *text_of(const json_t *details, const char *name)
{
    const char *text = json_string_value(json_object_get(details, name));
    return text ? text : "";
}

static int show_image(const json_t *answer, bool quiet)
{
    const json_t *details = json_object_get(answer, "details"), *warning;
    size_t i;
    if (quiet)
        return 0;
    print("Built image:\n  name: %s\n  digest: %s\n\n", text_of(details, "tag"), text_of(details, "image_digest"));
    print("Derived from:\n  base: %s (base_os_oid=%s)\n", text_of(details, "base"), text_of(details, "base_os_oid"));
    print("  env:  profile_oid=%s\n  sbx:  sbx_id=%s\n", text_of(details, "profile_oid"), text_of(details, "sbx_id"));
    json_array_foreach(json_object_get(details, "warnings"), i, warning)
        say_part("px pack: %s\n", json_string_value(warning));
    if (*text_of(details, "unpinned"))
        say_part("px pack: %s\n", text_of(details, "unpinned"));
    return 0;
}

static int run_image(struct args *a)
{
    struct project_call call;
    int r = project_begin(a->cli, "pack image", &call);
    if (r == 0)
        r = px_project_pack(call.project, a->request, &call.json, &call.e);
    return project_end(&call, r, show_image);
}

static const struct option_row rows[] = {
    {"tag", 0, OPTION_TEXT, offsetof(struct px_project_pack, tag), "NAME", "its name (px.local/NAME:VERSION)"},
    {"out", 'o', OPTION_TEXT, offsetof(struct px_project_pack, out), "PATH",
     "write it there; a name in .tar is an archive, any other a directory"},
    {"push", 0, OPTION_FLAG, offsetof(struct px_project_pack, push), NULL, "to the registry that the tag names"},
    {"allow-dirty", 0, OPTION_FLAG, offsetof(struct px_project_pack, allow_dirty), NULL, "with what is not committed"},
    {"check-repro", 0, OPTION_FLAG, offsetof(struct px_project_pack, check_repro), NULL, "make everything again, and compare"},
    {"format", 0, OPTION_TEXT, offsetof(struct px_project_pack, format), "FORMAT", "oci, oci-archive or docker-archive"},
    {"compression", 0, OPTION_TEXT, offsetof(struct px_project_pack, compression), "HOW", "gzip, zstd or none (gzip)"},
    {0},
};
const struct verb pack_verbs[] = {
    {"image", "[OPTIONS]", "an image of the project", run_image, rows, .size = sizeof(struct px_project_pack)},
    {0},
};
