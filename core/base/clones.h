// CAIRN_CLONES: compile a function for several instruction sets; the loader picks one when the
// program starts.
//
// The loops stay plain C++ and the compiler vectorises them. Sanitizers do not work with the
// indirect functions that this makes (the resolver would run before the sanitizer is up), so under
// them the macro is empty. CAIRN_INLINE makes helpers part of each clone.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAIRN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CAIRN_CLONES
#endif
#define CAIRN_INLINE __attribute__((always_inline)) inline
