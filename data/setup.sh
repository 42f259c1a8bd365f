# Run by /bin/sh -c in a setup box, as root of its own small world, on the base that is being made (base) or over one that is whole
# (layer): installs /px/debs/*.deb with the distribution's own dpkg, and takes away whatever depends on when or where that was.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC HOME=/root SOURCE_DATE_EPOCH=0 PYTHONHASHSEED=0
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true UCF_FORCE_CONFFNEW=1 DPKG_COLORS=never
umask 022
cd /

# Documentation and translations are left out; licences stay.
excludes='--path-exclude=/usr/share/man/* --path-exclude=/usr/share/info/* --path-exclude=/usr/share/locale/*
    --path-exclude=/usr/share/lintian/* --path-exclude=/usr/share/doc/* --path-include=/usr/share/doc/*/copyright'

compiled() { find /usr/lib/python3* -name '*.pyc' 2>/dev/null | sort; }

begin_base() {
    rm -rf /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/lintian/*
    find /usr/share/doc ! -type d ! -name copyright -delete
    mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
    : >/var/lib/dpkg/status
    : >/tmp/compiled
}

# Scripts make links to manual pages, and some fail without the directories.
begin_layer() {
    compiled >/tmp/compiled
    mkdir -p /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7 /usr/share/man/man8
}

# No service starts here. Pre-dependencies are all there: everything is unpacked, then everything configured.
install() {
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    # shellcheck disable=SC2086
    dpkg --force-depends --force-unsafe-io --force-confnew $excludes --unpack /px/debs/*.deb
    dpkg --force-unsafe-io --configure -a
    rm -f /usr/sbin/policy-rc.d
}

# Byte code that is never compared with its source: valid whatever the times of the files are, and the same wherever it was made.
compile() {
    command -v python3 >/dev/null || return 0
    compiled | comm -13 /tmp/compiled - >/tmp/new
    tr '\n' '\0' </tmp/new | xargs -0 -r rm -f --
    if [ "$1" = base ]; then
        find / -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
        find /usr/lib/python3* -name '*.py' | sort >/tmp/sources
    else
        sed 's,__pycache__/\([^/]*\)\.cpython-[0-9]*\.pyc$,\1.py,' /tmp/new >/tmp/sources
    fi
    [ ! -s /tmp/sources ] || python3 -P -S -B -m compileall -f -q -j 1 --invalidation-mode unchecked-hash -i - </tmp/sources >/dev/null || true
}

tidy() {
    rm -f /etc/machine-id /var/lib/dbus/machine-id /etc/.pwd.lock /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid-
    rm -f /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/lib/dpkg/lock /var/lib/dpkg/lock-frontend
    rm -f /var/lib/dpkg/triggers/Lock /var/log/*.log
    rm -rf /usr/share/man/* /var/log/apt /var/lib/apt/lists /var/cache/apt /var/cache/fontconfig /var/cache/man
    find /usr/share/fonts /usr/local/share/fonts -name .uuid -delete 2>/dev/null || true
    find /usr/share/doc -mindepth 1 -type d -empty -delete 2>/dev/null || true
}

"begin_$1"
install
compile "$1"
tidy
