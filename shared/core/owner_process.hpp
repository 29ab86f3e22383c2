#pragma once
// Objects that belong to one process. fork() copies such an object into the child, but not its threads, its
// membership in a run or its device context: the child must neither use nor destroy its copy, since a
// destructor would act on descriptors and memory that parent and child share, or join a thread that does not
// exist.

#include <sys/types.h>
#include <unistd.h>

#include <memory>

namespace carousel {

/// Identifies the process that created an object. Any thread.
class owner_process {
public:
    [[nodiscard]] bool is_this() const noexcept { return ::getpid() == pid_; }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

private:
    pid_t pid_ = ::getpid();
};

/// Deletes an object in the process that created it; in a forked child the copy is left untouched.
template <typename T>
struct delete_by_owner {
    owner_process owner;
    void operator()(T* object) const {
        static_assert(sizeof(T) > 0, "the deleted type is complete");
        if (owner.is_this()) delete object;
    }
};
template <typename T>
using owned_ptr = std::unique_ptr<T, delete_by_owner<T>>;

}  // namespace carousel
