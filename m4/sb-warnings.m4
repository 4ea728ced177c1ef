# SB_WARNINGS: the warnings the tree is kept free of; --enable-werror makes them errors.
AC_DEFUN([SB_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
    [], [enable_werror=no])
  SB_CFLAGS="-std=gnu17 -fvisibility=hidden -Wall -Wextra -Wvla -Wshadow -Wstrict-prototypes dnl
-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2 -Wno-unused-parameter"
  AS_IF([test "$enable_werror" = yes], [SB_CFLAGS="$SB_CFLAGS -Werror"])
  AC_SUBST([SB_CFLAGS])
])
