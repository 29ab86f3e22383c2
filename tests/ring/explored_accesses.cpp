// The functions that a compiler calls with -fsanitize=thread (its documented interface, the same in g++ and
// clang++). An atomic access is made here, after the explorer has possibly switched to another process; plain
// accesses need no call, because processes switch at atomic accesses only.
#include <atomic>
#include <cstring>

#include "core/types.hpp"

namespace carousel::test {
void explored_access(const void* at, bool writes);
void explored_change(const void* at);
}  // namespace carousel::test

using namespace carousel;

namespace {
template <typename T>
T load(const volatile T* at) {
    test::explored_access(const_cast<const T*>(at), false);
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
/// Replaces the value by `change` of it; returns the old value.
template <typename T, typename F>
T update(volatile T* at, F change) {
    test::explored_access(const_cast<const T*>(at), true);
    const T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    __atomic_store_n(at, change(old), __ATOMIC_SEQ_CST);  // this thread runs all processes
    test::explored_change(const_cast<const T*>(at));
    return old;
}
template <typename T>
bool compare_exchange(volatile T* at, T* expected, T desired) {
    test::explored_access(const_cast<const T*>(at), true);
    if (!__atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    test::explored_change(const_cast<const T*>(at));
    return true;
}
}  // namespace

// NOLINTBEGIN: the names and parameters are the compiler's
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void*, unsigned long) {}
void __tsan_write_range(void*, unsigned long) {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
void* __tsan_memcpy(void* to, const void* from, unsigned long n) { return std::memcpy(to, from, n); }
void* __tsan_memmove(void* to, const void* from, unsigned long n) { return std::memmove(to, from, n); }
void* __tsan_memset(void* to, int value, unsigned long n) { return std::memset(to, value, n); }

#define CAROUSEL_PLAIN(bytes)                   \
    void __tsan_read##bytes(void*) {}           \
    void __tsan_write##bytes(void*) {}          \
    void __tsan_unaligned_read##bytes(void*) {} \
    void __tsan_unaligned_write##bytes(void*) {}
CAROUSEL_PLAIN(1)
CAROUSEL_PLAIN(2)
CAROUSEL_PLAIN(4)
CAROUSEL_PLAIN(8)
CAROUSEL_PLAIN(16)
#undef CAROUSEL_PLAIN

#define CAROUSEL_ATOMIC(bits, T)                                                              \
    T __tsan_atomic##bits##_load(const volatile T* at, int) { return load(at); }              \
    void __tsan_atomic##bits##_store(volatile T* at, T v, int) {                              \
        update(at, [&](T) { return v; });                                                     \
    }                                                                                         \
    T __tsan_atomic##bits##_exchange(volatile T* at, T v, int) {                              \
        return update(at, [&](T) { return v; });                                              \
    }                                                                                         \
    T __tsan_atomic##bits##_fetch_add(volatile T* at, T v, int) {                             \
        return update(at, [&](T old) { return static_cast<T>(old + v); });                    \
    }                                                                                         \
    T __tsan_atomic##bits##_fetch_sub(volatile T* at, T v, int) {                             \
        return update(at, [&](T old) { return static_cast<T>(old - v); });                    \
    }                                                                                         \
    T __tsan_atomic##bits##_fetch_and(volatile T* at, T v, int) {                             \
        return update(at, [&](T old) { return static_cast<T>(old & v); });                    \
    }                                                                                         \
    T __tsan_atomic##bits##_fetch_or(volatile T* at, T v, int) {                              \
        return update(at, [&](T old) { return static_cast<T>(old | v); });                    \
    }                                                                                         \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* e, T d, int, int) { \
        return compare_exchange(at, e, d);                                                    \
    }                                                                                         \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* e, T d, int, int) {   \
        return compare_exchange(at, e, d);                                                    \
    }
CAROUSEL_ATOMIC(8, u8)
CAROUSEL_ATOMIC(16, u16)
CAROUSEL_ATOMIC(32, u32)
CAROUSEL_ATOMIC(64, u64)
#undef CAROUSEL_ATOMIC
}
// NOLINTEND
