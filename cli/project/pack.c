/* px pack: a project as an image. */
#include <stdio.h>
#include <string.h>

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

int cmd_pack(struct cli *cli, int argc, char **argv)
{
    static const char usage[] =
        "Write px pack image [--tag NAME] [--out PATH] [--push] [--allow-dirty] [--check-repro] [--format FORMAT] [--compression HOW].";
    struct px_project_pack how = {0};
    const struct word words[] = {{"--tag", 0, NULL, &how.tag},
                                 {"--out", 'o', NULL, &how.out},
                                 {"--push", 0, &how.push, NULL},
                                 {"--allow-dirty", 0, &how.allow_dirty, NULL},
                                 {"--check-repro", 0, &how.check_repro, NULL},
                                 {"--format", 0, NULL, &how.format},
                                 {"--compression", 0, NULL, &how.compression},
                                 {0}};
    struct project_call call;
    int status = 0, left = take_words(cli, "pack", usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left != 1 || strcmp(argv[0], "image") != 0)
        return usage_error(cli, USAGE_STATUS, usage, left == 0 ? "px pack what?" : "px pack makes an image and nothing else");
    int r = project_begin(cli, "pack image", &call);
    if (r == 0)
        r = px_project_pack(call.project, &how, &call.json, &call.e);
    return project_end(&call, r, show_image);
}
