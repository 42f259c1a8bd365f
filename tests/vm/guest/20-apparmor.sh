# tests/vm/guest/20-apparmor.sh - a profile of AppArmor on top of everything else. init has loaded px-test-confined.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

if [ ! -e /run/px-vm.apparmor ]; then
    skip apparmor 'the host has no apparmor_parser, so there is no profile to load'
    exit 0
fi
run "$PX" exec --apparmor px-test-confined -c 'cat /proc/self/attr/apparmor/current'
check_out apparmor-applied 'px-test-confined (enforce)'
run "$PX" exec --apparmor px-test-confined -c 'echo x >/tmp/allowed && cat /tmp/allowed; echo x >/tmp/forbidden'
check_status apparmor-refuses 2
run "$PX" exec -c 'echo x >/tmp/forbidden && cat /tmp/forbidden'
check_out apparmor-only-if-asked x
run "$PX" exec --apparmor px-no-such-profile -- true
check_status apparmor-unknown-profile 125
run sh -c '"$0" exec --apparmor px-no-such-profile -- true 2>&1 | head -n 1 | cut -c 1-5' "$PX"
check_out apparmor-unknown-profile-code PX039

# In a box that stays it is the commands' that are confined, each of them; pid 1 is not.
export PX_HOME="$tmp/home"
run "$PX" box start --name a --apparmor px-test-confined
check_out apparmor-box a
run "$PX" box exec a -c 'cat /proc/self/attr/apparmor/current; cat /proc/self/attr/apparmor/current'
check_out apparmor-box-applied 'px-test-confined (enforce)
px-test-confined (enforce)'
run "$PX" box exec a -c 'echo x >/tmp/allowed && cat /tmp/allowed; echo x >/tmp/forbidden'
check_status apparmor-box-refuses 2
run "$PX" box stop a
check_status apparmor-box-ends 0
run sh -c '"$0" box start --apparmor px-no-such-profile 2>&1 | head -n 1 | cut -c 1-5' "$PX"
check_out apparmor-box-unknown-profile PX039
run "$PX" box list --names
check_out apparmor-box-unknown-leaves-nothing ''
