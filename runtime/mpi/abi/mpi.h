/* SPDX-License-Identifier: Apache-2.0 */
/* What dgc uses of MPI, with the types and values that the standard's binary interface gives to it (MPI 5.0, chapter
 * 20): what is built with this runs on any libmpi_abi.so.1, and none has to be there when it is built. */
#ifndef DGC_RUNTIME_MPI_ABI_MPI_H
#define DGC_RUNTIME_MPI_ABI_MPI_H

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5];
} MPI_Status;

enum {
  MPI_SUCCESS = 0,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
};

#define MPI_COMM_WORLD    ((MPI_Comm)0x101)
#define MPI_BYTE          ((MPI_Datatype)0x247)
#define MPI_UINT64_T      ((MPI_Datatype)0x259)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_ANY_SOURCE    (-1)

int MPI_Initialized(int *flag);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Get_library_version(char *version, int *len);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *out);
int MPI_Recv_init(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request *out);
int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int MPI_Allgather(const void *data, int count, MPI_Datatype type, void *all, int each, MPI_Datatype of,
                  MPI_Comm comm);
int MPI_Request_free(MPI_Request *request);
int MPI_Start(MPI_Request *request);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);

#endif
