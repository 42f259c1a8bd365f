/* doctor/test_doctor.c - fixes for each distribution, programs that answer and programs that hang, and the whole
 * report. */
#include "doctor/doctor.h"
#include "host/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/doctor.h>

#include "base/text.h"
#include "harness/test.h"

/* ---- os-release ---- */

TEST(families)
{
    static const struct {
        const char *text;
        enum px_family family;
        const char *name;
    } rows[] = {
        {"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n", PX_FAMILY_DEBIAN, "Debian GNU/Linux 12 (bookworm)"},
        {"ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME='Ubuntu 24.04'", PX_FAMILY_UBUNTU, "Ubuntu 24.04"},
        {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", PX_FAMILY_UBUNTU, "unknown"},
        {"ID_LIKE=debian\nID=ubuntu\n", PX_FAMILY_UBUNTU, "unknown"},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", PX_FAMILY_FEDORA, "unknown"},
        {"ID=fedora\n", PX_FAMILY_FEDORA, "unknown"},
        {"ID=manjaro\nID_LIKE=arch\n", PX_FAMILY_ARCH, "unknown"},
        {"ID=alpine\n", PX_FAMILY_ALPINE, "unknown"},
        {"ID=nixos\n", PX_FAMILY_OTHER, "unknown"},
        {"ID=archaic\nVERSION_ID=debian\n", PX_FAMILY_OTHER, "unknown"},
        {"ID=\nID_LIKE\n=debian\n\n", PX_FAMILY_OTHER, "unknown"},
        {"ID=\"debian\n", PX_FAMILY_OTHER, "unknown"},
        {"PRETTY_NAME=\"a\033[31mb\"\nID=debian", PX_FAMILY_DEBIAN, "a\\x1b[31mb"},
        {"", PX_FAMILY_OTHER, "unknown"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_release r;
        px_release_parse(rows[i].text, strlen(rows[i].text), &r);
        ASSERT_EQ(r.family, rows[i].family);
        ASSERT_STR(r.name, rows[i].name);
    }
}

TEST(a_name_that_is_too_long_is_cut)
{
    char text[4096] = "ID=debian\nPRETTY_NAME=";
    size_t n = strlen(text);
    memset(text + n, 'x', sizeof text - n);
    struct px_release r;
    px_release_parse(text, sizeof text, &r);
    ASSERT_EQ(r.family, PX_FAMILY_DEBIAN);
    ASSERT(strlen(r.name) > 0 && strlen(r.name) < sizeof r.name && r.name[0] == 'x');
}

TEST(every_raise_has_words_everywhere)
{
    for (int raise = 0; raise < PX_RAISE_COUNT; raise++)
        for (int family = 0; family < PX_FAMILY_COUNT; family++) {
            const char *words = px_raise_words(raise, family);
            ASSERT(words);
            ASSERT_EQ(*words == '\0', raise == PX_RAISE_NONE);
            ASSERT(*words == '\0' || words[strlen(words) - 1] != '.');  /* the front end adds the full stop */
        }
    ASSERT(strstr(px_raise_words(PX_RAISE_DELEGATE, PX_FAMILY_DEBIAN), "systemd-run --user --scope -p Delegate=yes"));
}

/* ---- programs ---- */

enum { PATIENT = 15000 };       /* ms, for machines that are slow or busy */

static const char *make_program(const char *name, const char *script, char path[512])
{
    int dir = px_test_dir();
    (void)snprintf(path, 512, "%s/%s", px_test_dir_path(), name);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ASSERT(fd >= 0);
    ASSERT_EQ(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    (void)fchmod(fd, 0755);
    (void)close(fd);
    (void)close(dir);
    return path;
}

TEST(versions)
{
    char path[512], line[64];
    (void)make_program("good", "#!/bin/sh\necho \"thing $1 1.2\"; echo more\n", path);
    ASSERT_OK(px_tool_version(path, PATIENT, line, sizeof line));
    ASSERT_STR(line, "thing --version 1.2");
    (void)make_program("stderr", "#!/bin/sh\necho on stderr >&2; exit 3\n", path);
    ASSERT_OK(px_tool_version(path, PATIENT, line, sizeof line));
    ASSERT_STR(line, "on stderr");
    ASSERT_OK(px_tool_version(make_program("rude", "#!/bin/sh\nprintf 'a\\033[2Jb\\n'\n", path), PATIENT, line, sizeof line));
    ASSERT_STR(line, "a\\x1b[2Jb");
    (void)make_program("flood", "#!/bin/sh\nwhile :; do echo flooding flooding flooding; done\n", path);
    ASSERT_OK(px_tool_version(path, PATIENT, line, sizeof line));
    ASSERT_STR(line, "flooding flooding flooding");
    ASSERT_OK(px_tool_version(make_program("long", "#!/bin/sh\nprintf '%0200d\\n' 7\n", path), PATIENT, line, sizeof line));
    ASSERT_EQ(strlen(line), sizeof line - 1);
    ASSERT_EQ(px_tool_version(make_program("mute", "#!/bin/sh\nexit 0\n", path), PATIENT, line, sizeof line), -ENODATA);
    ASSERT_EQ(px_tool_version("/nonexistent/program", PATIENT, line, sizeof line), -ENODATA);
}

/* A program that keeps its output open and prints nothing is killed, and no process remains. */
TEST(a_program_that_hangs_is_ended)
{
    char path[512], line[64];
    ASSERT_EQ(px_tool_version(make_program("hang", "#!/bin/sh\nexec sleep 1000\n", path), 100, line, sizeof line), -ETIMEDOUT);
}

TEST(programs_are_found_in_path)
{
    char path[512], found[1024];
    (void)make_program("px-test-tool", "#!/bin/sh\n", path);
    char before[4096];
    (void)snprintf(before, sizeof before, "PATH=relative:%s:/bin", px_test_dir_path());
    ASSERT_EQ(putenv(before), 0);
    ASSERT(px_tool_find("px-test-tool", found, sizeof found));
    ASSERT_STR(found, path);
    ASSERT(px_tool_find("sh", found, sizeof found));
    ASSERT(!px_tool_find("px-no-such-tool", found, sizeof found));
    ASSERT_EQ(chmod(path, 0644), 0);
    ASSERT(!px_tool_find("px-test-tool", found, sizeof found));
}

TEST(tools_have_words)
{
    const struct px_tool *tool;
    char words[256];
    for (size_t i = 0; (tool = px_doctor_tool_at(i)); i++)
        for (int family = 0; family < PX_FAMILY_COUNT; family++) {
            px_doctor_tool_words(tool, family, words, sizeof words);
            ASSERT(words[0]);
        }
    px_doctor_tool_words(px_doctor_tool_at(0), PX_FAMILY_FEDORA, words, sizeof words);
    ASSERT_STR(words, "As root: dnf install runc");
}

/* ---- all of it ---- */

static void check_row(const struct px_doctor_row *row)
{
    bool enforced = strcmp(row->state, "enforced") == 0;
    ASSERT(enforced || strcmp(row->state, "degraded") == 0 || strcmp(row->state, "absent") == 0);
    ASSERT_EQ(enforced, row->why[0] == '\0');
    ASSERT(!enforced || row->permitted[0] || row->forbidden[0]);
    ASSERT(row->group[0] && row->name[0] && row->needed_for[0]);
}

TEST_DEADLINE(a_whole_report, 180)
{
    struct px_err e = {0};
    struct px_doctor *d = NULL;
    char *json = NULL;
    bool gap = false;
    size_t rows = 0, boxes = 0, presets = 0;
    ASSERT_PX(px_doctor_run(&d, &e), e);
    for (; px_doctor_row(d, rows); rows++) {
        const struct px_doctor_row *row = px_doctor_row(d, rows);
        check_row(row);
        gap = gap || (strcmp(row->needed_for, "full") == 0 && strcmp(row->state, "enforced") != 0);
    }
    size_t wanted = 0;
    while (px_probe_at(wanted))
        wanted++;
    for (size_t i = 0; px_doctor_tool_at(i); i++)
        wanted++;
    ASSERT_EQ(rows, wanted);
    while (px_preset_name(presets))
        presets++;
    while (px_doctor_box(d, boxes))
        boxes++;
    ASSERT_EQ(boxes, presets + 2);
    const struct px_doctor_verdict *v = px_doctor_verdict(d);
    ASSERT_EQ(v->full, !gap && px_doctor_box(d, 0)->starts);
    ASSERT_EQ(v->full, strcmp(v->tier, "full") == 0);
    ASSERT_EQ(v->full, v->raise[0] == '\0');
    ASSERT_PX(px_doctor_json(d, &json, &e), e);
    ASSERT(px_starts_with(json, "{\"schema\":1,\"tier\":\""));
    ASSERT(json[strlen(json) - 1] == '\n' && json[strlen(json) - 2] == '}');
    free(json);
    px_doctor_free(d);
    px_doctor_free(NULL);
}

TEST(no_memory)
{
    struct px_err e = {0};
    struct px_doctor *d = NULL;
    px_test_fail_alloc(1);
    ASSERT_EQ(px_doctor_run(&d, &e), -1);
    ASSERT(px_test_alloc_failed());
    ASSERT_EQ(e.code, 4);
    ASSERT(!d);
}
