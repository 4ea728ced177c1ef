# SB_SANITIZE: --enable-sanitizers=LIST, --enable-fuzzers, --enable-coverage.
AC_DEFUN([SB_SANITIZE], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
      [build with -fsanitize=LIST (address,undefined or thread)])],
    [], [enable_sanitizers=no])
  AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers], [link the fuzz targets with libFuzzer (needs clang)])],
    [], [enable_fuzzers=no])
  AC_ARG_ENABLE([coverage],
    [AS_HELP_STRING([--enable-coverage], [build for gcov; make coverage prints the result])],
    [], [enable_coverage=no])
  SB_SAN_FLAGS=
  AS_IF([test "$enable_sanitizers" = yes], [enable_sanitizers=address,undefined])
  AS_IF([test "$enable_sanitizers" != no],
    [SB_SAN_FLAGS="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer"
     SB_SAN_FLAGS="$SB_SAN_FLAGS -fno-sanitize-recover=all"])
  AS_IF([test "$enable_fuzzers" = yes],
    [SB_SAN_FLAGS="$SB_SAN_FLAGS -fsanitize=fuzzer-no-link"
     SB_FUZZ_FLAGS="-fsanitize=fuzzer"
     AC_MSG_CHECKING([whether $CC knows libFuzzer])
     sb_save_CFLAGS=$CFLAGS
     CFLAGS="$CFLAGS -fsanitize=fuzzer"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n) { return p == 0 && n != 0; }]])],
       [AC_MSG_RESULT([yes])],
       [AC_MSG_RESULT([no])
        AC_MSG_ERROR(m4_normalize([--enable-fuzzers needs clang with libFuzzer:
          install clang-14 libclang-rt-14-dev, give CC=clang-14]))])
     CFLAGS=$sb_save_CFLAGS])
  AS_IF([test "$enable_coverage" = yes],
    [SB_SAN_FLAGS="$SB_SAN_FLAGS --coverage"
     CFLAGS="$CFLAGS -O0"])
  AC_SUBST([SB_SAN_FLAGS])
  AC_SUBST([SB_FUZZ_FLAGS])
  AM_CONDITIONAL([COVERAGE], [test "$enable_coverage" = yes])
  AM_CONDITIONAL([FUZZERS], [test "$enable_fuzzers" = yes])
  AM_CONDITIONAL([SANITIZED], [test "$enable_sanitizers" != no || test "$enable_fuzzers" = yes])
])
