/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of test/unit/library_calls: one that answers, and with ASKS one that asks it. */
int answer(void);
int asks(void);

#ifdef ASKS
int asks(void)
{
    return answer() + 0;
}
#else
int answer(void)
{
    return 1;
}
#endif
