# What tests/vm loads to see that --apparmor takes hold: everything but one name.
profile px-test-confined {
  file,
  network,
  signal,
  unix,
  deny /tmp/forbidden rw,
}
