// Lesson 1: what is known of handles.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson handles_lesson{
    .number = 1,
    .name = "handles",
    .title = "a handle by every road, and what it names when its maker is dead",
    .question =
        "A process writes a handle to a file, whole, and is killed. Another one reads it. What does it have?",
    .answers = {"The memory: the file is whole", "64 bytes that name nothing", "An empty file"},
    .decided_by = "a whole handle whose maker is dead",
    .programs = {{"carousel-lab-handles", "cpu"}, {"carousel-lab-handles-cuda", "gpu", 60}},
    .plot = {"from fork() to an opened handle",
             "",
             "us",
             {{"System V shared memory", "sysv.us"},
              {"POSIX shared memory", "posix.us"},
              {"file", "file.us"},
              {"socket", "socket.us"},
              {"inherited by fork", "fork.us"},
              {"CUDA: open", "cuda.open.us"},
              {"CUDA: VMM import and map", "cuda.vmm.us"}}},
    .claims = {
        {"every road carries it",
         "Share the handle by a file, shared memory, a socket or fork().",
         "cpu",
         false,
         {{{equal("sysv.works", 1), equal("file.works", 1), equal("socket.works", 1), equal("fork.works", 1)},
           "They do: System V {sysv.us} us, file {file.us}, socket {socket.us}, fork {fork.us}, the start of "
           "a "
           "process included. The road is a matter of taste; what is left behind is not."}}},
        {"POSIX shared memory carries it",
         "",
         "shm",
         false,
         {{{equal("posix.works", 1), equal("posix.left", 1)},
           "It does, in {posix.us} us. Its name stays in /dev/shm until somebody unlinks it."}}},
        {"a descriptor's number is no handle",
         "Pass the file descriptor to the other process.",
         "cpu",
         false,
         {{{equal("number.works", 0), equal("rights.works", 1)},
           "The number says nothing in another process; the descriptor itself, sent by SCM_RIGHTS, works."}}},
        {"what a dead maker leaves behind",
         "",
         "cpu",
         true,
         {{{equal("sysv.left", 1), equal("file.left", 1), equal("socket.left", 0), equal("fork.left", 0)},
           "The System V segment and the file stay, with the handle in them, for whoever comes next. Of a "
           "socket and "
           "of a fork nothing stays: that is why Carousel's handles travel by sockets."}}},
        {"a whole handle whose maker is dead",
         "The file holds the handle; the consumer opens it.",
         "cpu",
         true,
         {{{equal("file.left", 1), equal("stale.opens", 0)},
           "The file was whole and its handle opened nothing: the maker was gone. What had been mapped "
           "before went "
           "on. A name dies with who made it.",
           1},
          {{equal("file.left", 1), equal("stale.opens", 1)},
           "The handle opened after its maker's death: something else holds that memory here, or the name "
           "was "
           "given again.",
           0}}},
        {"a descriptor whose maker is dead",
         "",
         "cpu",
         true,
         {{{equal("rights.works", 1), equal("mapped.works", 1)},
           "Still whole, and a newcomer could have it from whoever holds the descriptor. Carousel's memory "
           "is held "
           "so, by a process that never loads CUDA."}}},
        {"the textbook's file, its maker killed before fclose()",
         "fopen, fwrite, fclose; the other waits for the file.",
         "cpu",
         true,
         {{{below("textbook.bytes", 64), equal("textbook.opens", 0)},
           "The reader found a file of {textbook.bytes} bytes and took what lay on its stack for a handle. "
           "It must "
           "look at what fread() returns, and the writer must write beside the name and rename()."},
          {{equal("textbook.bytes", 64), equal("textbook.opens", 0)},
           "All 64 bytes were there, and named nothing: their maker was dead."}}},
    }};

}  // namespace carousel::lab
