# Where the kernel has no AppArmor the box does not start without it.
[ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ] || skip 'this kernel runs AppArmor'
says "$PX" exec --apparmor some-profile -- true
says "$PX" exec --apparmor 'two words' -- true
