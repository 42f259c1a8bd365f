# A thin face on meson. Two builds: build/glibc has everything, build/musl the static launcher without glibc's start-up.
# After `make` the program is build/px: the musl one where musl-tools is there, else the glibc one.

MUSL := $(shell command -v musl-gcc 2>/dev/null)
SCDOC := $(shell command -v scdoc 2>/dev/null)
NINJA := ninja --quiet
PREFIX ?= /usr/local

all: build/px

build/glibc/build.ninja:
	@meson setup --prefix $(PREFIX) build/glibc . >/dev/null || { cat build/glibc/meson-logs/meson-log.txt; exit 1; }
build/musl/build.ninja:
	@CC=musl-gcc CC_FOR_BUILD=gcc meson setup --native-file tools/musl.ini -Dmusl=true -Db_staticpic=false build/musl . >/dev/null || \
		{ cat build/musl/meson-logs/meson-log.txt; exit 1; }

glibc: build/glibc/build.ninja
	@$(NINJA) -C build/glibc
musl: build/musl/build.ninja
	@$(NINJA) -C build/musl px px-net

build/px: glibc $(if $(MUSL),musl)
	@ln -sfn $(if $(MUSL),musl,glibc)/px build/px
	@[ -z "$(MUSL)" ] || for p in px-main px-attack px-layer px-fetch px-git px-outside px-pasta; do ln -sfn ../glibc/$$p build/musl/$$p; done

# The Python package as it would be installed, for tests and for PYTHONPATH; a wheel and an sdist of it.
python: all
	@[ ! -e build/glibc/python/_px.abi3.so ] || /usr/bin/python3 python/build_backend.py stage build/glibc build/python
wheel: all
	@/usr/bin/python3 python/build_backend.py wheel build/glibc build/dist
	@/usr/bin/python3 python/build_backend.py sdist build/dist
demo: deps all
	@tests/demo build/px
test: test-deps all
	@tests/run build
# What a change should pass before it is committed.
check: test-deps all
	@tests/run build unit guards demo goldens-$$([ "$$(id -u)" = 0 ] && echo root || echo user)
# On a fresh Debian 12, made for it; PARTS="unit guards" runs those alone.
test-fresh:
	@tests/fresh $(PARTS)
test-vm: all
	@tests/vm/run build
bench: all
	@bench/run build
man: all
	@man/generate.py build/px build/man
# The build may have been set up for another PREFIX. Without scdoc there are no pages.
install: all $(if $(SCDOC),man)
	@grep -q '"name": "prefix", "value": "$(PREFIX)"' build/glibc/meson-info/intro-buildoptions.json || \
		{ meson configure -Dprefix=$(PREFIX) build/glibc && $(NINJA) -C build/glibc >/dev/null; }
	@meson install --quiet -C build/glibc
	@install -m 0755 build/px $(DESTDIR)$(PREFIX)/bin/px
	@[ -z "$(MUSL)" ] || install -m 0755 build/musl/px-net $(DESTDIR)$(PREFIX)/libexec/px/px-net
	@[ -n "$(SCDOC)" ] || echo 'make install: without the man pages, which scdoc makes: apt-get install scdoc' >&2
	@[ -z "$(SCDOC)" ] || for s in 1 5 7; do install -d $(DESTDIR)$(PREFIX)/share/man/man$$s && \
		install -m 0644 build/man/*.$$s $(DESTDIR)$(PREFIX)/share/man/man$$s/; done
deps:
	@tools/deps
test-deps:
	@tools/deps test
lint:
	@tools/lint
fuzz: test-deps
	@tools/fuzz
clean:
	rm -rf build

.PHONY: all python wheel glibc musl build/px demo test check test-fresh test-vm bench man install deps test-deps lint fuzz clean
