/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: makes the running Open MPI say another version than its own, which is the
 * one thing that the version gate looks at. */
__attribute__((visibility("default"))) const char opal_version_string[] = MULTILANE_FAKE_VERSION;
