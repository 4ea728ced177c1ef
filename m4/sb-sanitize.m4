# SB_SANITIZE: --enable-sanitizers=LIST, --enable-fuzzers, --enable-coverage.
AC_DEFUN([SB_SANITIZE], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [build with -fsanitize=LIST (address,undefined or thread)])],
    [], [enable_sanitizers=no])
  AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers], [link the fuzz targets with libFuzzer (needs clang)])],
    [], [enable_fuzzers=no])
  AC_ARG_ENABLE([coverage],
    [AS_HELP_STRING([--enable-coverage], [build for gcov])],
    [], [enable_coverage=no])
  SB_SAN_FLAGS=
  AS_IF([test "$enable_sanitizers" = yes], [enable_sanitizers=address,undefined])
  AS_IF([test "$enable_sanitizers" != no],
    [SB_SAN_FLAGS="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"])
  AS_IF([test "$enable_fuzzers" = yes],
    [SB_SAN_FLAGS="$SB_SAN_FLAGS -fsanitize=fuzzer-no-link"
     SB_FUZZ_FLAGS="-fsanitize=fuzzer"])
  AS_IF([test "$enable_coverage" = yes],
    [SB_SAN_FLAGS="$SB_SAN_FLAGS --coverage -O0"])
  AC_SUBST([SB_SAN_FLAGS])
  AC_SUBST([SB_FUZZ_FLAGS])
  AM_CONDITIONAL([FUZZERS], [test "$enable_fuzzers" = yes])
  AM_CONDITIONAL([SANITIZED], [test "$enable_sanitizers" != no || test "$enable_fuzzers" = yes])
])
