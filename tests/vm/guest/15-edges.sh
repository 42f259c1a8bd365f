# tests/vm/guest/15-edges.sh - a caller with 200 MB lives on whatever memory its boxes get, with the limits of cgroup v2.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

# Once: it is the library's, whichever px is tested, and slow where the processor is emulated.
if [ "$PX_VM_USER/$PX_VM_KIND" != root/glibc ]; then
    skip edges 'once is enough: root/glibc'
    exit 0
fi
run /usr/lib/px-vm/edges memory
sed -n 's/^not ok /# edges: /p' "$tmp/out"
check_status edges 0
