# SPDX-License-Identifier: BSD-3-Clause
# Headers that cross a component's border, and those that distributions forget.
noinst_HEADERS += \
	include/compat/multilane_event.h \
	include/compat/multilane_platform.h \
	include/compat/ompi/mpi/fortran/base/fint_2_int.h \
	include/compat/ompi/peruse/peruse.h \
	include/compat/opal/prefetch.h \
	include/compat/opal/mca/threads/pthreads/threads_pthreads.h \
	include/compat/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	include/compat/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	include/compat/opal/mca/threads/pthreads/threads_pthreads_tsd.h \
	include/compat/opal/mca/timer/linux/timer_linux.h
noinst_HEADERS += \
	include/multilane/extension.h include/multilane/measure.h include/multilane/page.h \
	include/multilane/record.h
