/* runtime/test_bundle.c - what stands in a config.json, for the engine's own use and for somebody's own hands. */
#include "runtime/bundle.h"

#include <jansson.h>
#include <px/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "plan/plan.h"

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct px_host host = {.uid = 1200, .gid = 1200, .landlock_abi = 7, .user_namespaces = true, .apparmor = true};
static const char *const argv_true[] = {"true", "word", NULL};

/* ---- making and reading configs ---- */

static struct px_policy make_policy(const char *preset, const char *const *pairs)
{
    struct px_policy p;
    struct px_err e = {0};
    ASSERT_PX(px_policy_init(&p, preset, &e), e);
    for (; pairs && pairs[0]; pairs += 2)
        ASSERT_PX(px_policy_put(&p, pairs[0], pairs[1], &e), e);
    return p;
}

/* The config of a run, parsed. */
static json_t *config_of(const char *preset, const char *const *pairs)
{
    struct px_policy policy = make_policy(preset, pairs);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    json_error_t where;

    ASSERT_PX(px_plan_new(&policy, argv_true, &host, false, &plan, &e), e);
    const struct px_bundle b = {.plan = plan, .policy = &policy, .net_made = true, .uid = 1000, .gid = 1000,
                                .uids = {{0, 1, 65535}}, .gids = {{0, 1, 65535}}, .extents = 1};
    ASSERT_PX(px_bundle_print(&b, &out, &e), e);
    json_t *config = json_loads(px_buf_text(&out), JSON_REJECT_DUPLICATES, &where);
    ASSERT(config);
    px_plan_free(plan);
    px_policy_done(&policy);
    return config;
}

static json_t *export_of(const char *preset, const char *const *pairs, const char *const argv[])
{
    struct px_policy policy = make_policy(preset, pairs);
    struct px_err e = {0};
    char *text = NULL;
    json_error_t where;
    ASSERT_PX(px_policy_export(&policy, argv, "oci", &text, &e), e);
    json_t *config = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    ASSERT(config);
    free(text);
    px_policy_done(&policy);
    return config;
}

/* "process.user.uid": numbers stand for places in lists. */
static json_t *at(json_t *value, const char *path)
{
    while (value && *path) {
        char word[64];
        size_t n = strcspn(path, ".");
        uint64_t index;
        ASSERT(n < sizeof word);
        memcpy(word, path, n);
        word[n] = '\0';
        bool number = json_is_array(value) && px_parse_u64(word, 1000, &index) == 0;
        value = number ? json_array_get(value, index) : json_object_get(value, word);
        path += n + (path[n] == '.');
    }
    return value;
}

static const char *text_at(json_t *config, const char *path)
{
    return json_string_value(at(config, path));
}

static bool holds(json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
        if (px_equal(json_string_value(item), text))
            return true;
    return false;
}

/* The mount at a place; NULL if there is none. Its position in *ret_index. */
static json_t *mount_at(json_t *config, const char *target, size_t *ret_index)
{
    size_t i;
    json_t *item;
    json_array_foreach(at(config, "mounts"), i, item)
        if (px_equal(text_at(item, "destination"), target)) {
            if (ret_index)
                *ret_index = i;
            return item;
        }
    return NULL;
}

static bool has_option(json_t *config, const char *target, const char *option)
{
    json_t *mount = mount_at(config, target, NULL);
    ASSERT(mount);
    return holds(at(mount, "options"), option);
}

static bool has_namespace(json_t *config, const char *type)
{
    size_t i;
    json_t *item;
    json_array_foreach(at(config, "linux.namespaces"), i, item)
        if (px_equal(text_at(item, "type"), type))
            return true;
    return false;
}

/* ---- a run ---- */

TEST(a_run_starts_px_start_without_privileges)
{
    json_t *c = config_of(NULL, PAIRS("env", "SECRET=hunter2", "workdir", "/nowhere"));
    static const char *const sets[] = {"bounding", "effective", "inheritable", "permitted", "ambient"};
    ASSERT_STR(text_at(c, "ociVersion"), "1.0.2");
    ASSERT_EQ(json_array_size(at(c, "process.args")), 1);
    ASSERT_STR(text_at(c, "process.args.0"), "/.px/start");
    ASSERT_EQ(json_array_size(at(c, "process.env")), 0);        /* the command's own are in the orders, byte for byte */
    ASSERT_STR(text_at(c, "process.cwd"), "/");                  /* a runtime would make a directory that is not there */
    ASSERT_EQ(json_integer_value(at(c, "process.user.uid")), 1000);
    ASSERT_EQ(json_integer_value(at(c, "process.user.gid")), 1000);
    ASSERT(json_is_true(at(c, "process.noNewPrivileges")) && json_is_false(at(c, "process.terminal")));
    for (size_t i = 0; i < PX_COUNT_OF(sets); i++) {
        json_t *set = json_object_get(at(c, "process.capabilities"), sets[i]);
        ASSERT(json_is_array(set) && json_array_size(set) == 0);
    }
    ASSERT(json_is_true(at(c, "root.readonly")));
    ASSERT_STR(text_at(c, "root.path"), "rootfs");
    ASSERT_STR(text_at(c, "hostname"), "sandbox");
    ASSERT(!at(c, "process.rlimits") && !at(c, "linux.seccomp") && !at(c, "linux.resources"));
    json_decref(c);
}

TEST(namespaces_are_the_plans)
{
    static const char *const always[] = {"user", "mount", "pid", "ipc", "uts", "cgroup"};
    json_t *c = config_of(NULL, NULL);
    for (size_t i = 0; i < PX_COUNT_OF(always); i++)
        ASSERT(has_namespace(c, always[i]));
    ASSERT(!has_namespace(c, "network"));       /* it is there already, with its loopback as the policy says */
    ASSERT_EQ(json_integer_value(at(c, "linux.uidMappings.0.containerID")), 0);
    ASSERT_EQ(json_integer_value(at(c, "linux.uidMappings.0.hostID")), 1);
    ASSERT_EQ(json_integer_value(at(c, "linux.gidMappings.0.size")), 65535);
    json_decref(c);

    c = config_of(NULL, PAIRS("without", "uts-namespace,ipc-namespace,cgroup-namespace"));
    ASSERT(!has_namespace(c, "uts") && !has_namespace(c, "ipc") && !has_namespace(c, "cgroup") && has_namespace(c, "pid"));
    ASSERT(!at(c, "hostname"));
    json_decref(c);
}

TEST(the_base_is_read_only_and_proc_is_masked)
{
    json_t *c = config_of(NULL, NULL);
    static const char *const options[] = {"rbind", "ro", "nosuid", "nodev"};
    for (size_t i = 0; i < PX_COUNT_OF(options); i++)
        ASSERT(has_option(c, "/usr", options[i]));
    ASSERT(has_option(c, "/proc", "hidepid=ptraceable") && has_option(c, "/proc", "noexec"));
    ASSERT(has_option(c, "/dev", "ro") && has_option(c, "/dev", "noexec"));
    ASSERT(has_option(c, "/dev/pts", "newinstance") && has_option(c, "/dev/pts", "max=64"));
    ASSERT(holds(at(c, "linux.readonlyPaths"), "/proc/sys"));
    ASSERT(json_array_size(at(c, "linux.maskedPaths")) > 3);
    json_decref(c);
    c = config_of(NULL, PAIRS("without", "masks,proc-read-only,hidepid"));
    ASSERT_EQ(json_array_size(at(c, "linux.maskedPaths")), 0);
    ASSERT_EQ(json_array_size(at(c, "linux.readonlyPaths")), 0);
    ASSERT(!has_option(c, "/proc", "hidepid=ptraceable"));
    json_decref(c);
}

TEST(writable_directories_are_bounded)
{
    json_t *c = config_of("untrusted", PAIRS("tmpfs", "/scratch:size=1m"));
    ASSERT(has_option(c, "/scratch", "size=1048576") && has_option(c, "/scratch", "mode=1777"));
    ASSERT(has_option(c, "/scratch", "uid=1000") && has_option(c, "/scratch", "nr_inodes=1024"));
    ASSERT(!has_option(c, "/scratch", "noexec") && has_option(c, "/tmp", "noexec"));
    ASSERT(has_option(c, "/home/sandbox", "mode=0755"));
    json_decref(c);
}

/* Sorted whatever the order given, so that none hides another; and only the staged copies are named. */
TEST(binds_come_from_the_bundle_parents_first)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(dir);
    char outer[512], inner[512];
    size_t first = 0, second = 0;
    snprintf(outer, sizeof outer, "%s:/work:ro", px_test_dir_path());
    snprintf(inner, sizeof inner, "%s:/work/deeper:rw", px_test_dir_path());
    json_t *c = config_of(NULL, PAIRS("bind", inner, "bind", outer));
    json_t *work = mount_at(c, "/work", &first), *deeper = mount_at(c, "/work/deeper", &second);
    ASSERT(work && deeper && first < second);
    ASSERT(has_option(c, "/work", "ro") && has_option(c, "/work/deeper", "rw"));
    ASSERT(px_starts_with(text_at(work, "source"), PX_BUNDLE_BINDS "/"));
    ASSERT(px_starts_with(text_at(deeper, "source"), PX_BUNDLE_BINDS "/"));
    ASSERT(!px_equal(text_at(work, "source"), text_at(deeper, "source")));
    json_decref(c);
}

/* A runtime would make /tmp/a and give it to nobody. */
TEST(a_tmpfs_with_places_in_it_is_made_beside)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(dir);
    char bind[512];
    snprintf(bind, sizeof bind, "%s:/tmp/a/b", px_test_dir_path());
    json_t *c = config_of(NULL, PAIRS("bind", bind));
    ASSERT_STR(text_at(mount_at(c, "/tmp", NULL), "type"), "bind");
    ASSERT_STR(text_at(mount_at(c, "/tmp", NULL), "source"), PX_BUNDLE_BESIDE "/tmp");
    ASSERT_STR(text_at(mount_at(c, "/home/sandbox", NULL), "type"), "tmpfs");
    json_decref(c);
}

TEST(with_a_disk_limit_all_parts_are_of_one_tmpfs)
{
    json_t *c = config_of(NULL, PAIRS("disk", "4m"));
    json_t *home = mount_at(c, "/home/sandbox", NULL), *tmp = mount_at(c, "/tmp", NULL);
    ASSERT_STR(text_at(home, "type"), "bind");
    ASSERT(px_starts_with(text_at(home, "source"), PX_BUNDLE_BESIDE "/.scratch/"));
    ASSERT(px_starts_with(text_at(tmp, "source"), PX_BUNDLE_BESIDE "/.scratch/"));
    ASSERT(!mount_at(c, "/.scratch", NULL));
    ASSERT(has_option(c, "/dev/shm", "noexec"));
    json_decref(c);
}

TEST(apparmor_is_the_runtimes_to_apply)
{
    json_t *c = config_of(NULL, PAIRS("apparmor", "some-profile"));
    ASSERT_STR(text_at(c, "process.apparmorProfile"), "some-profile");
    json_decref(c);
}

/* The kernel takes an extent only if one of the map around holds all of it. */
TEST(shifted_ids_meet_those_around_one_to_one)
{
    struct px_extent out[PX_EXTENTS_MAX];
    ASSERT_EQ(px_bundle_shift(1, 65536, 0, out), 1);
    ASSERT(out[0].inside == 0 && out[0].outside == 1 && out[0].count == 65535);
    ASSERT_EQ(px_bundle_shift(1, 65536, 1001, out), 3);
    uint32_t inside = 0;
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(out[i].inside, inside);
        ASSERT_EQ(out[i].outside, inside + 1);
        inside += out[i].count;
    }
    ASSERT_EQ(inside, 65535);
    ASSERT(out[1].inside == 1000 && out[1].outside == 1001 && out[1].count == 1);
}

/* ---- an export ---- */

TEST(an_export_holds_the_command_and_its_limits)
{
    json_t *c = export_of("untrusted", PAIRS("env", "A=b c", "workdir", "/tmp", "nofile", "64"), argv_true);
    size_t i;
    json_t *limit;
    bool files = false;
    ASSERT_STR(text_at(c, "process.args.0"), "true");
    ASSERT_STR(text_at(c, "process.args.1"), "word");
    ASSERT(holds(at(c, "process.env"), "A=b c"));
    ASSERT_STR(text_at(c, "process.cwd"), "/tmp");
    json_array_foreach(at(c, "process.rlimits"), i, limit)
        if (px_equal(text_at(limit, "type"), "RLIMIT_NOFILE"))
            files = json_integer_value(at(limit, "soft")) == 64 && json_integer_value(at(limit, "hard")) == 64;
    ASSERT(files);
    ASSERT_EQ(json_integer_value(at(c, "linux.resources.memory.limit")), 512 << 20);
    ASSERT_EQ(json_integer_value(at(c, "linux.resources.memory.swap")), 512 << 20);
    ASSERT_EQ(json_integer_value(at(c, "linux.resources.cpu.quota")), 100000);
    ASSERT_STR(text_at(c, "linux.seccomp.defaultAction"), "SCMP_ACT_ERRNO");
    ASSERT(has_namespace(c, "network"));
    ASSERT(strstr(json_string_value(json_object_get(json_object_get(c, "annotations"), "px.not-in-this-file")), "timeout"));
    json_decref(c);
}

TEST(an_export_never_maps_the_hosts_root)
{
    json_t *c = export_of(NULL, NULL, argv_true);
    size_t i;
    json_t *extent;
    json_array_foreach(at(c, "linux.uidMappings"), i, extent)
        ASSERT(json_integer_value(at(extent, "hostID")) > 0);
    json_array_foreach(at(c, "linux.gidMappings"), i, extent)
        ASSERT(json_integer_value(at(extent, "hostID")) > 0);
    ASSERT(i > 0);
    json_decref(c);
}

/* Links cannot be said, so /bin is a second view of what it leads to; sources are the host's own paths. */
TEST(an_export_names_the_hosts_paths)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(dir);
    char bind[512], target[64];
    snprintf(bind, sizeof bind, "%s:/work:ro", px_test_dir_path());
    json_t *c = export_of(NULL, PAIRS("bind", bind), argv_true);
    ASSERT_STR(text_at(mount_at(c, "/work", NULL), "source"), px_test_dir_path());
    ASSERT_STR(text_at(mount_at(c, "/usr", NULL), "source"), "/usr");
    if (readlink("/bin", target, sizeof target) > 0)
        ASSERT_STR(text_at(mount_at(c, "/bin", NULL), "source"), "/usr/bin");
    json_decref(c);
    c = export_of(NULL, PAIRS("rootfs", px_test_dir_path()), argv_true);
    ASSERT_STR(text_at(c, "root.path"), px_test_dir_path());
    ASSERT(!mount_at(c, "/usr", NULL));
    json_decref(c);
}

static void refuse_export(const char *const argv[], const char *to, int code)
{
    struct px_policy policy = make_policy(NULL, NULL);
    struct px_err e = {0};
    char *text = NULL;
    ASSERT_EQ(px_policy_export(&policy, argv, to, &text, &e), -1);
    ASSERT_EQ(e.code, code);
    ASSERT(!text && e.fix[0]);
    px_policy_done(&policy);
}

TEST(what_json_cannot_hold_is_refused)
{
    refuse_export(PAIRS("echo", "\xff\xfe"), "oci", PX_E_VALUE);
    refuse_export(argv_true, "chroot", PX_E_VALUE);
    refuse_export(argv_true, NULL, PX_E_VALUE);
    refuse_export((const char *const[]){NULL}, "oci", PX_E_USAGE);
}

TEST(running_out_of_memory_is_an_error)
{
    struct px_policy policy = make_policy("untrusted", NULL);
    unsigned n = 0;
    for (bool failed = true; failed; n++) {
        struct px_err e = {0};
        char *text = NULL;
        px_test_fail_alloc(n + 1);
        int r = px_policy_export(&policy, argv_true, "oci", &text, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r < 0 ? failed && e.code != 0 && !text : text && strstr(text, "\n}\n"));
        free(text);
    }
    ASSERT(n > 5);
    px_policy_done(&policy);
}
