# tests/vm/guest/50-overlay.sh - roots that can be changed, and changes, on a kernel whose tmpfs has no attributes of users.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

# On the RAM disk's ext4, if there is one: a tmpfs of this kernel can hold neither an upper layer nor an id-mapped mount.
place=$HOME/overlay
[ "$PX_VM_USER" != root ] || place=/home/overlay
rm -rf "$place"
mkdir -p "$place/rootfs/bin" "$place/rootfs/etc" "$place/work"
cp /bin/busybox "$place/rootfs/bin/busybox"
ln -s busybox "$place/rootfs/bin/sh"
echo one >"$place/work/file"
root="$PX exec --rootfs $place/rootfs"

# shellcheck disable=SC2086
run $root -- /bin/sh -c 'echo read-only'
check_out rootfs read-only

# shellcheck disable=SC2086
run $root --overlay -- /bin/sh -c 'echo 1 >/etc/x && /bin/busybox cat /etc/x'
if grep -q 'before Linux 6.6' "$tmp/err"; then
    check_status overlay-in-memory-says-why 125
    check_line overlay-in-memory-says-what-to-do err "overlay=DIR"
else
    check_out overlay-in-memory 1
fi

case $(stat -f -c %T "$place") in
tmpfs | ramfs) skip overlay-in-a-directory 'there is no ext4 here' ;;
*)
    # shellcheck disable=SC2086
    run $root --overlay="$place/upper" --persist -- /bin/sh -c 'b=/bin/busybox; echo 1 >/etc/x && $b mkdir /d && $b rmdir /d && $b mkdir /d && $b stat -c %u /etc /etc/x'
    check_out overlay-in-a-directory '1000
1000'
    # shellcheck disable=SC2086
    run $root --overlay="$place/upper" --persist -- /bin/busybox cat /etc/x
    check_out overlay-kept 1
    run find "$place/upper" ! -user "$PX_VM_USER"
    check_out overlay-belongs-to-the-caller ''
    export PX_HOME="$place/home"
    run "$PX" -q exec --changes "$place/work" --keep=one -c 'echo two >>file; mkdir d; echo n >d/n'
    check_status changes-kept 0
    run cat "$place/work/file"
    check_out changes-stay-apart one
    run "$PX" -q exec --changes "$place/work" --keep=one --apply -c true
    check_status changes-applied 0
    run cat "$place/work/file" "$place/work/d/n"
    check_out changes-are-there 'one
two
n'
    ;;
esac
rm -rf "$place"
