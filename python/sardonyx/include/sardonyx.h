/* sardonyx.h: marks for crash tests of persistent-memory programs (docs/crash-test/real-programs.md).
 *
 * SARDONYX_MARK("text") names the moment. `sardonyx trace record --level cpu --pc` keeps it, the reports of `sardonyx crash-test` say
 * after which mark a cut is, and `--start text` begins there. The text must be a C string that is there when the mark is passed.
 *
 * It is one instruction that does nothing (a NOP with the displacement "SDNX" whose register holds the text), so it costs a
 * register and seven bytes when nobody records, and nothing but x86-64 and GCC or Clang are needed. Elsewhere it is empty.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SARDONYX_H
#define SARDONYX_H

#if defined(__x86_64__) && defined(__GNUC__)
#define SARDONYX_MARK(text) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x53, 0x44, 0x4e, 0x58" : : "a"(text) : "memory")
#else
#define SARDONYX_MARK(text) ((void)(text))
#endif

#endif
