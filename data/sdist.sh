# Run by /bin/sh -c in a setup box: the source archive $1 in /px/in becomes a wheel, with what the box has and nothing else. The wheel's
# name on the first line of standard output, then its bytes; everything that is said goes to standard error.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC HOME=/root SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0
export PYTHONDONTWRITEBYTECODE=1 PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
umask 022
mkdir -p /var/tmp/wheel /var/tmp/source
cd /var/tmp/source
# pip would unpack it to a directory with a name of chance, which compilers write into what they make.
python3 -c 'import shutil, sys; shutil.unpack_archive(sys.argv[1], ".")' "/px/in/$1" || { echo 'error: the archive cannot be unpacked' >&2; exit 1; }
set -- *
[ $# -ne 1 ] || [ ! -d "$1" ] || cd "$1"
if ! python3 -m pip wheel --no-deps --no-index --no-build-isolation --no-cache-dir --wheel-dir /var/tmp/wheel . >/var/tmp/log 2>&1; then
    # Builds say much; what is missing is said first, by the compiler, the linker or Python.
    if grep -q BackendUnavailable /var/tmp/log; then
        python3 -c 'import tomllib; print("error: its build needs", ", ".join(tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]))' >&2
    else
        { grep -m 1 -E 'fatal error: |cannot find -l|ModuleNotFoundError: |[a-zA-Z]Error: ' /var/tmp/log || tail -n 5 /var/tmp/log; } | sed 's/^ *//' >&2
    fi
    exit 1
fi
set -- /var/tmp/wheel/*.whl
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
    echo 'error: the archive did not become one wheel' >&2
    exit 1
fi
printf '%s\n' "${1##*/}"
cat "$1"
