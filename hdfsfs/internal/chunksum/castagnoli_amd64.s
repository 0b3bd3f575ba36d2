#include "textflag.h"

// func castagnoliThree(data *byte, chunk int, sums *[abreast]uint32)
//
// The ends of the chunks are kept, and one negative offset from all of them counts up to zero.
TEXT ·castagnoliThree(SB), NOSPLIT, $0-24
	MOVQ data+0(FP), SI
	MOVQ chunk+8(FP), CX
	MOVQ sums+16(FP), DI
	ADDQ CX, SI
	LEAQ (SI)(CX*1), R8
	LEAQ (R8)(CX*1), R9
	NEGQ CX
	MOVL $0xffffffff, AX
	MOVL AX, BX
	MOVL AX, DX

loop:
	CRC32Q (SI)(CX*1), AX
	CRC32Q (R8)(CX*1), BX
	CRC32Q (R9)(CX*1), DX
	ADDQ $8, CX
	JNZ  loop

	NOTL AX
	NOTL BX
	NOTL DX
	MOVL AX, 0(DI)
	MOVL BX, 4(DI)
	MOVL DX, 8(DI)
	RET
